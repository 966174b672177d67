// Package client is the endpoint of uplink for game clients. It encodes RPCs that are called at a
// high rate so that each call takes few bits on the uplink, and receives replication streams.
//
//	conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{})
//	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{})
//	seq, err := move.Send(&m) // 60 times a second
//
// A [Loop] calls an RPC in each tick and predicts the player: docs/prediction.md describes it.
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
// A panic of a callback that handles data from the server, or of the package's own decoders, ends
// the session with transport.ErrPanic, but not the process, because a server must not be able to
// end the process. The panic is counted in Stats.Panics and logged with its stack, by slog's
// default logger if Config.Logger is nil. The client then reconnects, unless Config.NoReconnect is
// set. A panic of Config.Renew or Config.Assign ends the process. One in the function that
// StateView.Poll calls, or in SnapshotConfig.OnMessage while SnapshotView.Sample runs, reaches the
// caller. If a callback other than Renew and Assign ends its goroutine with runtime.Goexit, as
// FailNow of package testing does, the connection continues on another one.
package client
