// Package client is the game client's end of uplink: it wraps RPCs that are
// called at high rate so that each call takes few bits on the uplink.
//
//	conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{})
//	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{})
//	err = move.Send(&m) // 60 times a second
//
// Datagrams are encrypted and authenticated. A server on another machine lets a client
// in by a connect token, which the game's backend issues (Config.Token, package token)
// and which is good for one connection: Config.Renew gets the next one, and without it
// such a connection is not made again. On loopback neither is needed.
//
// A connection that is lost, for instance since the dedicated server was
// restarted, is made again, and its RPCs are bound again, by itself; until then
// Send says [ErrReconnecting]. It goes on as it is when the client's address changes.
//
// The package recovers no panic of the game's callbacks: a client has one player, so its process
// ends, as with any other panic. Config.OnMessage, SnapshotConfig.Handle, StateConfig.Handle and
// Config.Renew run on goroutines of the package, where the game cannot recover a panic by itself.
// A panic in the function that StateView.Poll calls reaches the caller of Poll. If a callback
// other than Renew ends its goroutine with runtime.Goexit, as FailNow of package testing does, the
// connection continues on another one.
package client
