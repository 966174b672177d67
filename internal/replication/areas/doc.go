// Package areas codes worlds of which each client sees a part: the objects of some areas of
// interest.
//
// Objects that are in the same areas form groups. Each group is coded once per baseline, for all
// clients that see it; a message to one client is a directory and the bytes of the groups that the
// client sees. Objects that enter a group are coded one by one, because the client may already know
// them from other groups that it sees. A message never depends on objects that the client does not
// see. docs/spec/snapshots.md specifies the messages.
package areas
