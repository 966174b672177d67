package visits

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	moveRPC = "Move"
	buyRPC  = "Buy" // reliable
	// The world of each server.
	worldName = "things"
	things    = 4
	worldHz   = 10
	// messageHz is the rate of reliable messages to each player.
	messageHz = 2
)

// Server is a dedicated server of the fleet. It records the calls and messages that it receives,
// and hands players over. Its methods with two arguments have the form of package net/rpc.
type Server struct {
	host  *load.Host
	world *load.Things

	mu     sync.Mutex
	open   map[*ds.Player]*visit
	closed []Visit
	count  Handovers
	calm   bool // whether no messages are sent
}

type visit struct {
	Visit
	moving bool // whether a handover is pending or completed
}

// Handovers counts the outcomes of handovers.
type Handovers struct {
	Completed uint64 `json:"completed"`
	Failed    uint64 `json:"failed"` // the player stayed, because the other server could not be reached or refused it
	Ended     uint64 `json:"ended"`  // because the session ended
}

// NewServer starts a server at a loopback address, where no key is needed.
func NewServer(addr, name string, store fleet.Store, network transport.Network, players int) (*Server, error) {
	s := &Server{open: map[*ds.Player]*visit{}}
	srv, err := ds.Listen(addr, ds.Config{
		Network: network, MaxPlayers: players, Joined: s.joined, Left: s.left,
		Hooks: ds.Hooks{Connected: func(p *ds.Player) { s.world.Offer(p) }, HandedOver: s.handedOver},
		OnMessage: func(p *ds.Player, b []byte) {
			s.visit(p, func(v *visit) {
				if len(b) == 4 {
					v.Messages = extend(v.Messages, binary.LittleEndian.Uint32(b))
				}
			})
		},
		Fleet: &fleet.Config{Store: store, Name: name},
	})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		ds.Handle(srv, moveRPC, func(p *ds.Player, f ds.Frame[move]) { s.visit(p, func(v *visit) { v.called(&f.Value) }) }),
		ds.Handle(srv, buyRPC, func(p *ds.Player, f ds.Frame[move]) {
			s.visit(p, func(v *visit) {
				v.check(&f.Value)
				v.Reliable = extend(v.Reliable, uint32(f.Value.Number))
			})
		}))
	if err == nil {
		s.world, err = load.NewThings(srv, worldName, things, worldHz, worldHz)
	}
	if err != nil {
		return nil, errors.Join(err, srv.Close())
	}
	s.host = load.Serve(srv, worldHz, func(tick uint64) {
		s.world.Send(tick)
		if tick%(worldHz/messageHz) == 0 {
			s.sendMessages()
		}
	})
	return s, nil
}

func (s *Server) visit(p *ds.Player, f func(*visit)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.open[p]; v != nil {
		f(v)
	}
}

func (v *visit) check(m *move) {
	if *m != moveAt(v.Client, m.Number) {
		v.Wrong++
	}
}

func (v *visit) called(m *move) {
	if v.Calls == 0 {
		v.Called, v.First = time.Now(), m.Number
	}
	v.check(m)
	v.Calls++
	v.Last = m.Number
}

// payloadOf returns the payload of a client's handovers.
func payloadOf(client uint64) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, client), 1+int(client%100))
}

func (s *Server) joined(p *ds.Player) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := p.HandoverPayload()
	s.open[p] = &visit{Visit: Visit{Client: p.ClientID(), ID: rand.Uint64(), Payload: got == nil || bytes.Equal(got, payloadOf(p.ClientID()))}}
}

func (s *Server) left(p *ds.Player, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.open[p]; v != nil {
		s.closed = append(s.closed, v.Visit)
		delete(s.open, p)
	}
}

func (s *Server) handedOver(p *ds.Player, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.count.Completed++
	case errors.Is(err, transport.ErrHandover):
		s.count.Failed++
	default:
		s.count.Ended++
	}
	if v := s.open[p]; v != nil {
		v.moving = err == nil
	}
}

func (s *Server) sendMessages() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, v := range s.open {
		if s.calm {
			return
		}
		if p.SendReliable(appendMessage(nil, v.ID, v.Sent)) == nil {
			v.Sent++
		}
	}
}

// Calm stops the messages to players.
func (s *Server) Calm(struct{}, *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm = true
	return nil
}

// HandoverRequest requests that Count random players are handed over to random servers of To.
type HandoverRequest struct {
	Count int
	To    []netip.AddrPort
}

// Handover hands players over, and sets the number of players.
func (s *Server) Handover(h HandoverRequest, players *int) error {
	s.mu.Lock()
	var chosen []*ds.Player
	for p, v := range s.open { // in random order
		if v.moving {
			continue
		}
		if *players++; len(chosen) < h.Count && v.Calls > 0 {
			v.moving = true
			chosen = append(chosen, p)
		}
	}
	s.mu.Unlock()
	for _, p := range chosen {
		err := p.Handover(target(h.To[rand.IntN(len(h.To))]), ds.HandoverConfig{Payload: payloadOf(p.ClientID())})
		if err != nil {
			s.visit(p, func(v *visit) { v.moving = false }) // the player has just left, or is being handed over
		}
	}
	return nil
}

func target(a netip.AddrPort) ds.Target { return ds.Target{Addrs: []netip.AddrPort{a}} }

// Drain drains the server, and sets the number of its players and the time that it took.
func (s *Server) Drain(to []netip.AddrPort, d *Drained) error {
	for range s.host.Players() {
		d.Players++
	}
	next, begin := rand.IntN(len(to)), time.Now()
	err := s.host.Drain(context.Background(), func(p *ds.Player) (ds.Target, ds.HandoverConfig, error) {
		next++
		s.visit(p, func(v *visit) { v.moving = true })
		return target(to[next%len(to)]), ds.HandoverConfig{Payload: payloadOf(p.ClientID())}, nil
	})
	d.Took = time.Since(begin)
	return err
}

// Drained is the result of a drain.
type Drained struct {
	Players int           `json:"players"`
	Took    time.Duration `json:"took_ns"`
}

// Record contains the events that a server has recorded.
type Record struct {
	Visits    []Visit   `json:"visits"`
	Handovers Handovers `json:"handovers"`
}

// Record sets r to the events that the server has recorded since its start.
func (s *Server) Record(_ struct{}, r *Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*r = Record{append([]Visit(nil), s.closed...), s.count}
	for _, v := range s.open {
		c := v.Visit
		c.Reliable, c.Messages = append([]Span(nil), v.Reliable...), append([]Span(nil), v.Messages...)
		r.Visits = append(r.Visits, c)
	}
	return nil
}

// Addr returns the address to dial.
func (s *Server) Addr() netip.AddrPort { return s.host.Addr() }

// Address sets the address to dial.
func (s *Server) Address(_ struct{}, addr *netip.AddrPort) error {
	*addr = s.Addr()
	return nil
}

// Close stops the server.
func (s *Server) Close() error { return s.host.Close() }
