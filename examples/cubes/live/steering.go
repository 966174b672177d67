package live

import (
	"context"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/ends"
	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// steering is how keys come to the server, by the RPC, and the world to the client: over UDP on loopback behind the
// simulated link.
type steering struct {
	network *simnet.WrappedNetwork
	server  *ds.Server
	conn    *client.Conn
	move    *client.Stream[game.Move]
	ends    *ends.Ends
	joining error       // of a player who was to be offered the world
	held    world.Input // as the server has it
}

func newSteering(ctx context.Context, l session.Link) (s *steering, err error) {
	s = &steering{}
	if s.network, err = simnet.WrapNetwork(nil, half(l), half(l)); err != nil {
		return nil, err
	}
	joined := func(p *ds.Player) { s.joining = errors.Join(s.joining, s.ends.Joined(p)) }
	if s.server, err = ds.Listen("127.0.0.1:0", ds.Config{Poll: true, Joined: joined}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	if err = ds.Handle(s.server, "Move", func(_ *ds.Player, f ds.Frame[game.Move]) { s.held = f.Value.Input() }); err != nil {
		return nil, err
	}
	if s.ends, err = ends.New(s.server); err != nil {
		return nil, err
	}
	go func() { _ = s.server.Serve(context.WithoutCancel(ctx)) }() // until it is closed
	dial, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if s.conn, err = client.Dial(dial, s.server.Addr().String(), client.Config{Network: s.network}); err != nil {
		return nil, err
	}
	s.ends.Connected(s.conn)
	s.move, err = client.Bind[game.Move](s.conn, "Move", client.Rate(game.Rate))
	return s, err
}

// half is one direction of the link, in front of the client's socket.
func half(l session.Link) simnet.Config {
	return simnet.Config{Delay: l.RTT / 2, Jitter: l.Jitter / 4, Loss: l.Loss}
}

// set changes the link.
func (s *steering) set(l session.Link) error { return s.network.Set(half(l), half(l)) }

// tick makes one call with the keys that the player holds, and gives those that the server knows of.
func (s *steering) tick(keys world.Input) (world.Input, error) {
	err := s.move.Send(&game.Move{Keys: uint8(keys)})
	if errors.Is(err, client.ErrReconnecting) {
		err = nil // it comes back by itself
	}
	s.server.Poll()
	return s.held, errors.Join(err, s.joining)
}

func (s *steering) close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
		s.ends.Wait()
	}
	return errors.Join(err, s.server.Close())
}
