// Package load plays with many clients in one process, to test and to measure servers. A [Bot] is a
// client. A [Crowd] gives its bots turns at a constant rate and counts; a [Report] presents the
// counts. A [Host] is a server for scenarios that bring their own. The scenarios define the turns
// of the bots:
//
//   - [Run]: repeat recorded traces (uplink bots).
//   - package soak: the same while the network and the servers change (uplink soak).
//   - package visits: visit servers that hand players over (uplink soak --fleet).
//   - package hostile: attack a server (uplink soak --hostile).
//
// The players of uplink demo are bots too.
package load
