// Package client is the endpoint of uplink for game clients. It encodes RPCs that are called at a
// high rate so that each call takes few bits on the uplink, and receives replication streams.
//
//	conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{})
//	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{})
//	err = move.Send(&m) // 60 times a second
//
// Datagrams are encrypted and authenticated. A server on another machine requires a connect token
// from the game's backend (Config.Token, package token). A token is valid for one connection:
// Config.Renew returns the next one. Without Config.Renew, a client that used a token cannot
// reconnect. On loopback, no token is needed.
//
// If a connection is lost, for example because the server was restarted, the client reconnects and
// binds its RPCs again by itself. Until then, Send returns [ErrReconnecting]. The session continues
// when the client's address changes.
//
// The package recovers no panic of the game's callbacks: a client has one player, so its process
// ends, as with any other panic. Config.OnMessage, SnapshotConfig.Handle, StateConfig.Handle and
// Config.Renew run on goroutines of the package, where the game cannot recover a panic by itself.
// A panic in the function that StateView.Poll calls reaches the caller of Poll. If a callback
// other than Renew ends its goroutine with runtime.Goexit, as FailNow of package testing does, the
// connection continues on another one.
package client
