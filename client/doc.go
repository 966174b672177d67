// Package client is the game client's end of uplink: it wraps RPCs that are
// called at high rate so that each call takes few bits on the uplink.
//
//	conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{})
//	move, err := client.Bind[ServerMove](conn, "ServerMove")
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
package client
