package worldbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// server is a server with its players and simulated clients.
type server struct {
	cfg      *Config
	world    *replication.World
	sessions *sessions // nil: datagrams are discarded
	players  []*player
	clients  []*client // one per player
	queue    replication.SendQueue
	tick     int // newest tick
	now      time.Time
	sets     [snapshot.Ring]*snapshot.Set // sets by tick
	sizes    []datagram                   // datagrams of the tick, for the bare send
	encodes  int
	coded    int    // total size of the messages coded, in bytes
	times    phases // times of the current tick
	began    time.Duration
}

// epoch is the time of tick 0.
var epoch = time.Time{}.Add(time.Hour)

// phases are the times of the parts of a tick.
type phases struct{ quantize, encode, send, bare, acks, all time.Duration }

type datagram struct{ to, size int }

// player implements [replication.Player] with a session. It measures the time of sending.
type player struct {
	session
	server  *server
	index   int
	streams *replication.Replicas
	stream  *replication.Replica
	failed  error
}

// RTT implements [replication.Player].
func (p *player) RTT() time.Duration {
	return time.Duration(p.server.clients[p.index].rtt) * time.Second / rate
}

// Returned implements [replication.Player].
func (p *player) Returned() time.Time { return time.Time{} }

// MayWorlds implements [replication.Player].
func (p *player) MayWorlds(time.Time) bool { return true }

// WorldSlowed implements [replication.Player].
func (p *player) WorldSlowed(string, float64) {}

// Rate implements [replication.Player].
func (p *player) Rate() float64 { return math.MaxInt32 }

// AppendProcessed implements [replication.Player].
func (p *player) AppendProcessed(dst []byte) []byte { return dst }

// Send implements [replication.Player].
func (p *player) Send(b []byte) error {
	s := p.server
	start := s.cfg.Clock()
	err := p.Queue(b)
	s.times.send += s.cfg.Clock() - start
	s.sizes = append(s.sizes, datagram{p.index, len(b)})
	if e := s.clients[p.index].datagram(s.tick, b); e != nil {
		p.failed = e
	}
	return err
}

// Encoding implements [replication.Observer].
func (s *server) Encoding() { s.began = s.cfg.Clock() }

// Encoded implements [replication.Observer].
func (s *server) Encoded(bytes int) {
	s.times.encode += s.cfg.Clock() - s.began
	s.encodes++
	s.coded += bytes
}

// newServer returns a server to whose world all players have subscribed.
func newServer(ctx context.Context, cfg *Config, clients []*client) (s *server, err error) {
	s = &server{cfg: cfg, clients: clients, now: epoch}
	if s.world, err = cfg.Scene.NewWorld(); err != nil {
		return nil, err
	}
	s.world.Observe(s)
	s.world.FlushBy(s.flush)
	if !cfg.Offline {
		if s.sessions, err = openSessions(len(clients)); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				_ = s.sessions.close() // after another error
			}
		}()
	}
	for i := range clients {
		p := &player{server: s, index: i, session: discarding{}}
		if s.sessions != nil {
			if p.session, err = s.sessions.dial(ctx); err != nil {
				return nil, err
			}
		}
		s.players = append(s.players, p)
		p.streams = replication.NewReplicas(p)
		if p.stream, err = s.world.Offer(p.streams); err != nil {
			return nil, err
		}
	}
	if s.sessions != nil {
		err = s.sessions.divert(ctx, s.players)
	}
	return s, err
}

func (s *server) flush() {
	if s.sessions != nil {
		start := s.cfg.Clock()
		s.sessions.listener.Flush()
		s.times.send += s.cfg.Clock() - start
	}
}

// step makes the next tick: it handles the due acks, and then quantizes, codes and sends the tick.
func (s *server) step(n int) error {
	s.tick, s.now = n, epoch.Add(time.Duration(n)*time.Second/rate)
	s.times, s.sizes, s.encodes, s.coded = phases{}, s.sizes[:0], 0, 0
	for _, c := range s.clients {
		c.reply(n, s.cfg.Scene, &s.sets)
		c.begin(n)
	}
	for i, c := range s.clients {
		if answer, ok := c.behavior.answer(n); ok {
			c.reset()
			if err := s.players[i].streams.HandleReply(replication.AppendReply(nil, 0, answer)[1:], &s.queue, s.now); err != nil {
				return err
			}
		}
	}
	if err := s.acks(); err != nil {
		return err
	}
	for i, p := range s.players {
		s.cfg.Scene.See(i, p.stream, n)
	}
	start := s.cfg.Clock()
	if err := s.world.Begin(uint64(n)); err != nil {
		return err
	}
	began := s.cfg.Clock()
	s.times.encode += began - start // fitting of the world's parameters
	if err := s.cfg.Scene.Put(s.world, n); err != nil {
		return err
	}
	s.sets[n%len(s.sets)] = s.world.Open()
	s.world.Commit()
	s.times.quantize = s.cfg.Clock() - began
	_, err := s.world.Broadcast(func() time.Time { return s.now }, 0)
	s.times.all = s.cfg.Clock() - start
	if s.sessions != nil {
		start := s.cfg.Clock()
		err = errors.Join(err, s.sessions.sendBare(s.sizes))
		s.times.bare = s.cfg.Clock() - start
	}
	for _, p := range s.players {
		if p.failed != nil {
			return p.failed
		}
	}
	return err
}

// acks handles the acks of the tick. Acks of hostile clients may be refused.
func (s *server) acks() error {
	start := s.cfg.Clock()
	for i, c := range s.clients {
		if len(c.ack) == 0 {
			continue
		}
		if err := s.players[i].streams.HandleAck(c.ack, s.now); err != nil && c.behavior.ack == nil {
			return fmt.Errorf("worldbench: player %d: %w", i, err)
		}
	}
	s.times.acks = s.cfg.Clock() - start
	return nil
}
