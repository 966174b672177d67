// Package areas codes worlds of which each client sees a part: the objects of some areas of
// interest.
//
// Objects that are in the same areas form groups. Each group is coded once per baseline, for all
// clients that see it; a message to one client is a directory and the bytes of the groups that the
// client sees. Objects that enter a group are coded one by one, since what a client already knows
// of them depends on which other groups it sees. Nothing in a message depends on what the client
// does not see. docs/spec/snapshots.md specifies the messages.
package areas
