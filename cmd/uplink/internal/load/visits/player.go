package visits

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/token"
)

// reliableEvery is the number of calls between a bot's reliable calls and messages.
const reliableEvery = 20

// player is a bot that visits servers, with the data that it sent and received.
type player struct {
	id    uint64
	store fleet.Store

	conn    *client.Conn
	journal journal
	moves   *client.Stream[move]
	buys    *client.Stream[move]

	// Used only by turn:
	next, bought int32
	sent         uint32
	calm         bool

	snapshots atomic.Uint64

	mu       sync.Mutex
	received map[uint64][]Span // messages by visit
	invalid  int               // number of malformed messages
	lost     []string          // reasons of sessions that ended without a handover
	avoid    map[netip.AddrPort]time.Time
	assigned netip.AddrPort // server last returned by assign; zero once the bot has played on it
}

// avoidFor is the time for which a bot avoids a server that did not answer. The directory may list
// such a server for as long.
const avoidFor = fleet.ServerTTL + 2*time.Second

// assign returns a server and a token for it. It is called for the first connection, and when a
// server does not answer.
func (p *player) assign(ctx context.Context) (string, token.Token, error) {
	servers, err := p.store.Servers(ctx)
	if err != nil {
		return "", token.Token{}, err
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		if at, err := netip.ParseAddrPort(p.conn.Server()); err == nil {
			p.avoid[at] = now
		}
		p.avoid[p.assigned] = now
	}
	chosen := func() (fleet.Server, bool) {
		return fleet.Choose(servers, func(s *fleet.Server) bool {
			return !slices.ContainsFunc(s.Addrs, func(a netip.AddrPort) bool { return now.Sub(p.avoid[a]) < avoidFor })
		})
	}
	s, ok := chosen()
	if !ok { // answers were lost or late, but not the last one
		maps.DeleteFunc(p.avoid, func(_ netip.AddrPort, since time.Time) bool { return since.Before(now) })
		s, ok = chosen()
	}
	if !ok {
		s, ok = fleet.Choose(servers, nil)
	}
	if !ok {
		return "", token.Token{}, errors.New("visits: no server accepts players")
	}
	p.assigned = s.Addrs[0]
	_, _ = fmt.Fprintf(&p.journal, "gets the server %v", p.assigned) // never fails
	t, err := token.Issue(token.Development().Issuer(), token.Claims{
		ClientID: p.id, Issued: now, Expires: now.Add(time.Minute), Servers: s.Addrs,
	})
	return s.Addrs[0].String(), t, err
}

// connect connects the player with index i.
func (r *run) connect(ctx context.Context, i int) (*load.Bot, error) {
	p := &player{id: uint64(i + 1), store: r.store, received: map[uint64][]Span{}, avoid: map[netip.AddrPort]time.Time{}}
	addr, t, err := p.assign(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := client.Dial(ctx, addr, client.Config{
		Network: r.network, Token: t, Assign: p.assign, OnMessage: p.message, OnEvent: p.event, Transport: client.Transport{Timeout: r.options.Timeout},
		Logger: p.journal.logger(),
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.conn = conn
	p.mu.Unlock()
	if err := p.bind(ctx, r.options.Rate); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	r.players[i] = p
	return &load.Bot{Conn: conn, Turn: p.turn, Close: conn.Close}, nil
}

func (p *player) bind(ctx context.Context, rate float64) (err error) {
	if p.moves, err = client.Bind[move](ctx, p.conn, moveRPC, client.BindConfig{RateHz: rate}); err != nil {
		return err
	}
	if p.buys, err = client.Bind[move](ctx, p.conn, buyRPC, client.BindConfig{Reliable: true, RateHz: rate}); err != nil {
		return err
	}
	return load.SubscribeThings(ctx, p.conn, worldName, &p.snapshots)
}

func (p *player) message(m []byte) {
	visit, n, err := parseMessage(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.invalid++
		return
	}
	p.received[visit] = extend(p.received[visit], n)
}

func (p *player) event(e client.Event) {
	if e.New {
		p.mu.Lock()
		p.assigned = netip.AddrPort{}
		p.mu.Unlock()
	}
	if e.Err == nil || e.Handover != 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = append(p.lost, fmt.Sprintf("%v: %v", e.State, e.Err))
}

// turn makes a call, and from time to time reliable calls. Refused calls count as missing.
func (p *player) turn() error {
	m := moveAt(p.id, p.next)
	_, _ = p.moves.Send(&m)
	if p.next++; p.next%reliableEvery != 0 || p.calm {
		return nil
	}
	m = moveAt(p.id, p.bought)
	if _, err := p.buys.Send(&m); err == nil {
		p.bought++
	}
	if p.conn.SendReliable(binary.LittleEndian.AppendUint32(nil, p.sent)) == nil {
		p.sent++
	}
	return nil
}
