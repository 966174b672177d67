package web

import (
	"context"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Move is the RPC that controls the player. The client calls it each tick.
type Move struct {
	// Keys are the keys held: a [world.Input].
	Keys uint8 `uplink:"kind=bits,width=6"`
}

// steering is a real server and client, connected over UDP on loopback with a simulated link in
// between. It carries the keys to the server and replicates the world to the client.
type steering struct {
	network   *simnet.WrappedNetwork
	server    *ds.Server
	conn      *client.Conn
	move      *client.Stream[Move]
	endpoints *session.Endpoints
	joining   error       // errors of Endpoints.Joined
	held      world.Input // keys that the server received last
}

func newSteering(ctx context.Context, l session.Link) (s *steering, err error) {
	s = &steering{}
	if s.network, err = simnet.WrapNetwork(nil, half(l), half(l)); err != nil {
		return nil, err
	}
	joined := func(p *ds.Player) { s.joining = errors.Join(s.joining, s.endpoints.Joined(p)) }
	if s.server, err = ds.Listen("127.0.0.1:0", ds.Config{Poll: true, Joined: joined}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	if err = ds.Handle(s.server, "Move", func(_ *ds.Player, f ds.Frame[Move]) { s.held = world.Input(f.Value.Keys) & world.Keys }); err != nil {
		return nil, err
	}
	if s.endpoints, err = session.NewEndpoints(s.server); err != nil {
		return nil, err
	}
	go func() { _ = s.server.Serve(context.WithoutCancel(ctx)) }() // returns after Close
	dial, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if s.conn, err = client.Dial(dial, s.server.Addr().String(), client.Config{Network: s.network}); err != nil {
		return nil, err
	}
	s.endpoints.Connected(s.conn)
	s.move, err = client.Bind[Move](ctx, s.conn, "Move", client.BindConfig{RateHz: world.TickRate})
	return s, err
}

// half returns the configuration of one direction of the link.
func half(l session.Link) simnet.Config {
	return simnet.Config{Delay: l.RTT / 2, Jitter: l.Jitter / 4, Loss: l.Loss}
}

func (s *steering) set(l session.Link) error { return s.network.Set(half(l), half(l)) }

// tick sends the keys that the player holds and returns the keys that the server received last.
func (s *steering) tick(keys world.Input) (world.Input, error) {
	err := s.move.Send(&Move{Keys: uint8(keys)})
	if errors.Is(err, client.ErrReconnecting) {
		err = nil // the client reconnects
	}
	s.server.Poll()
	return s.held, errors.Join(err, s.joining)
}

func (s *steering) close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
		s.endpoints.Wait()
	}
	return errors.Join(err, s.server.Close())
}
