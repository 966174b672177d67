// Package load plays with many clients in one process, to test and to measure servers. It has one
// [Bot], one pacing of them in a [Crowd], one counting and one [Report] of what a crowd counts, and
// [Host], a server for scenarios that bring their own. Scenarios say what bots do:
//
//   - [Run]: repeat recorded traces (uplink bots).
//   - package soak: the same while the network and the servers change (uplink soak).
//   - package visits: visit servers that hand players over (uplink soak --fleet).
//   - package hostile: attack a server (uplink soak --hostile).
//
// The players of uplink demo are bots too.
package load
