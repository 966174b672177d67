package fleetload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
)

// reliableEvery is the number of calls after which a bot makes a reliable call and sends a message.
const reliableEvery = 20

// bot is a player.
type bot struct {
	id    uint64
	store fleet.Store

	conn    *client.Conn
	journal journal
	moves   *client.Stream[move]
	buys    *client.Stream[move]

	// Of the goroutine that plays:
	next, bought int32
	sent         uint32
	unsent       int // calls that were refused
	calm         bool

	snapshots atomic.Uint64

	mu       sync.Mutex
	received map[uint64][]Span // messages, by visit
	invalid  int               // messages of another form
	lost     []string          // sessions that ended without a handover: the reasons
	avoid    map[netip.AddrPort]time.Time
	assigned netip.AddrPort // the server that assign returned last, unless the bot has played since
}

// avoidFor is the time for which a bot does not return to a server that did not answer: the
// directory may list it for that long.
const avoidFor = fleet.ServerTTL + 2*time.Second

// assign returns a server, and a token for it. It is called for the first connection, and when a
// server does not answer.
func (b *bot) assign(ctx context.Context) (string, token.Token, error) {
	servers, err := b.store.Servers(ctx)
	if err != nil {
		return "", token.Token{}, err
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		if at, err := netip.ParseAddrPort(b.conn.Server()); err == nil {
			b.avoid[at] = now
		}
		b.avoid[b.assigned] = now
	}
	chosen := func() (fleet.Server, bool) {
		return fleet.Choose(servers, func(s *fleet.Server) bool {
			return !slices.ContainsFunc(s.Addrs, func(a netip.AddrPort) bool { return now.Sub(b.avoid[a]) < avoidFor })
		})
	}
	s, ok := chosen()
	if !ok { // answers were lost, or late: any but the last one
		maps.DeleteFunc(b.avoid, func(_ netip.AddrPort, since time.Time) bool { return since.Before(now) })
		s, ok = chosen()
	}
	if !ok {
		s, ok = fleet.Choose(servers, nil)
	}
	if !ok {
		return "", token.Token{}, errors.New("fleetload: no server accepts players")
	}
	b.assigned = s.Addrs[0]
	b.journal.note("gets the server %v", b.assigned)
	t, err := token.Issue(token.Development().Issuer(), token.Claims{
		ClientID: b.id, Issued: now, Expires: now.Add(time.Minute), Servers: s.Addrs,
	})
	return s.Addrs[0].String(), t, err
}

func (r *run) newBot(ctx context.Context, id uint64) (*bot, error) {
	b := &bot{id: id, store: r.store, received: map[uint64][]Span{}, avoid: map[netip.AddrPort]time.Time{}}
	addr, t, err := b.assign(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := client.Dial(ctx, addr, client.Config{
		Network: r.network, Token: t, Assign: b.assign, OnMessage: b.message, OnEvent: b.event, Timeout: r.options.Timeout,
		Logger: slog.New(&b.journal),
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.conn = conn
	b.mu.Unlock()
	if err := b.bind(ctx, r.options.Rate); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return b, nil
}

func (b *bot) bind(ctx context.Context, rate float64) (err error) {
	if b.moves, err = client.Bind[move](ctx, b.conn, moveRPC, client.BindConfig{RateHz: rate}); err != nil {
		return err
	}
	if b.buys, err = client.Bind[move](ctx, b.conn, buyRPC, client.BindConfig{Reliable: true, RateHz: rate}); err != nil {
		return err
	}
	_, err = client.SubscribeSnapshots(ctx, b.conn, worldName, client.SnapshotConfig[thing]{
		Handle: func(*client.Snapshot[thing]) { b.snapshots.Add(1) },
	})
	return err
}

func (b *bot) message(m []byte) {
	visit, n, err := parseMessage(m)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.invalid++
		return
	}
	b.received[visit] = extend(b.received[visit], n)
}

func (b *bot) event(e session.Event) {
	if e.New {
		b.mu.Lock()
		b.assigned = netip.AddrPort{}
		b.mu.Unlock()
	}
	if e.Err == nil || e.Handover != 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = append(b.lost, fmt.Sprintf("%v: %v", e.State, e.Err))
}

// play makes a call, and sometimes reliable ones.
func (b *bot) play() {
	m := moveAt(b.id, b.next)
	if _, err := b.moves.Send(&m); err != nil {
		b.unsent++
	}
	if b.next++; b.next%reliableEvery != 0 || b.calm {
		return
	}
	m = moveAt(b.id, b.bought)
	if _, err := b.buys.Send(&m); err == nil {
		b.bought++
	}
	if b.conn.SendReliable(binary.LittleEndian.AppendUint32(nil, b.sent)) == nil {
		b.sent++
	}
}
