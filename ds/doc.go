// Package ds is the server end of uplink: it receives the RPCs that clients call at a high rate,
// decodes each frame and passes it to the game.
//
//	srv, err := ds.Listen("127.0.0.1:7777", ds.Config{})
//	err = ds.Handle(srv, "ServerMove", func(p *ds.Player, f ds.Frame[ServerMove]) { ... })
//	err = srv.Serve(ctx)
//
// That is for loopback. On a public address a server has a key, and players connect with tokens
// that the game's backend issues with the issuer key (package token). Player.ClientID and
// Player.UserData return contents of the token.
//
//	srv, err := ds.Listen("203.0.113.7:7777", ds.Config{Key: key})
//
// Handlers run as frames arrive, one at a time, on a goroutine that Serve starts. With Config.Poll
// they run where the game calls [Server.Poll] instead, for a loop with a tick of its own; Serve
// then only receives.
//
// With Config.Transport.Shards there are several such goroutines, each with a part of the players.
// Handlers, validators, Joined, Left and OnMessage then run for different players at the same time,
// so shared data needs a lock. They never run at the same time for one player. If a client
// reconnects while its last session is still open, Left of that session returns before Joined of
// the new one is called. In Poll all of them run one at a time, whatever the number of shards.
//
// A panic in one of these functions ends the session of the player for whom it was called, and is
// logged and counted. The server and all other players continue. [Hooks.PanicHandler] is called
// with the panic, and can end the process.
package ds
