// Package fleet is the state that several dedicated servers share: which connect tokens were used,
// where each client plays, and which servers there are.
//
// Servers share it through a [Store]. [NewMemory] returns one for the servers of a process; module
// fleet/natsstore has one in NATS JetStream. A server takes part with ds.Config.Fleet:
//
//	srv, err := ds.Listen(addr, ds.Config{Fleet: &fleet.Config{Store: store, Name: "eu-7"}})
//
// From then on, a token starts one session in the whole fleet. If a client joins another server,
// the newest session wins: its earlier session ends with transport.ErrReplaced. The server
// announces its addresses and load, and a backend chooses a server from [Store.Servers] ([Choose]).
//
// Sessions never depend on the store. While it fails, players continue to play, and joins are
// refused, or allowed for a limited time ([Config.Outage]).
package fleet
