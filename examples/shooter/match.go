package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/examples/shooter/internal/game"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// you is the client id of the player whom the page shows. The others are bots.
const you = 1

func name(id uint64) string {
	if id == you {
		return "you"
	}
	return fmt.Sprint("bot ", id)
}

// link describes both directions of the link of each client.
type link struct {
	RTT    float64 `json:"rtt"`    // ms, without jitter
	Loss   float64 `json:"loss"`   // fraction
	Jitter float64 `json:"jitter"` // ms, mean
}

func (l link) half() (simnet.Config, error) {
	c := simnet.Config{
		Delay: time.Duration(l.RTT / 2 * float64(time.Millisecond)), Jitter: time.Duration(l.Jitter * float64(time.Millisecond)),
		Loss: l.Loss, Seed: 1,
	}
	if !(l.RTT >= 0 && l.RTT <= 1000 && l.Jitter >= 0 && l.Jitter <= 200 && l.Loss >= 0 && l.Loss <= 0.5) {
		return c, fmt.Errorf("rtt is %g, jitter %g, loss %g: want up to 1000, 200 and 0.5", l.RTT, l.Jitter, l.Loss)
	}
	return c, nil
}

// match is a server with its clients, in real time.
type match struct {
	server  *game.Server
	network *simnet.WrappedNetwork
	you     *game.Client
	running *errgroup.Group
	bots    int

	mu      sync.Mutex
	link    link
	auto    bool // a bot plays for you
	held    game.Input
	shots   []game.Input // inputs with shots of the page
	counts  map[*game.Client]counts
	viewers map[chan []byte]bool
}

// counts are the counts of one client.
type counts struct {
	game.Counts
	client.LoopStats
}

// newMatch starts a server with bots, and connects you. Everything ends with the context.
func newMatch(ctx context.Context, bots int, l link) (m *match, err error) {
	if bots < 1 || bots > 60 {
		return nil, fmt.Errorf("%d bots: want 1 to 60", bots)
	}
	half, err := l.half()
	if err != nil {
		return nil, err
	}
	m = &match{link: l, auto: true, bots: bots, counts: map[*game.Client]counts{}, viewers: map[chan []byte]bool{}}
	if m.network, err = simnet.WrapNetwork(nil, half, half); err != nil {
		return nil, err
	}
	if m.server, err = game.NewServer("127.0.0.1:0", nil); err != nil {
		return nil, err
	}
	m.running, ctx = errgroup.WithContext(ctx)
	m.running.Go(func() error { return m.server.Serve(ctx) })
	m.running.Go(func() error { return m.advance(ctx) })
	if m.you, err = game.Dial(ctx, m.server, you, m.network); err != nil {
		m.running.Go(func() error { return err })
		return nil, m.running.Wait()
	}
	return m, nil
}

// maxLate is the delay of the server's ticks above which the game runs slower.
const maxLate = 250 * time.Millisecond

// advance runs the ticks of the server.
func (m *match) advance(ctx context.Context) error {
	start := time.Now()
	for n := uint64(1); ctx.Err() == nil; n++ {
		if err := m.server.Advance(); err != nil {
			return err
		}
		next := start.Add(game.Time(n))
		if late := time.Since(next); late > maxLate { // overloaded: the game runs slower
			start = start.Add(late)
			continue
		}
		time.Sleep(time.Until(next)) // at once if it is late: ticks catch up
	}
	return nil
}

// run plays until the context of newMatch is done.
func (m *match) run(ctx context.Context) error {
	m.running.Go(func() error { return m.play(ctx, m.you, m.input()) })
	for i := range m.bots {
		m.running.Go(func() error {
			id := uint64(you + 1 + i)
			c, err := game.Dial(ctx, m.server, id, m.network)
			if err != nil {
				return err
			}
			return m.play(ctx, c, game.NewBot(1, id).Play)
		})
	}
	err := m.running.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// play runs the ticks of a client, and closes it.
func (m *match) play(ctx context.Context, c *game.Client, input func(*game.Picture) game.Input) error {
	defer c.Close()
	for ctx.Err() == nil {
		next, err := c.Advance(input)
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.counts[c] = counts{c.Counts(), c.Prediction()}
		m.mu.Unlock()
		time.Sleep(time.Until(next))
	}
	return nil
}

// input returns a function that returns your input: that of the page, or of a bot. It shows each
// picture on the page.
func (m *match) input() func(*game.Picture) game.Input {
	bot := game.NewBot(1, you)
	return func(p *game.Picture) game.Input {
		m.mu.Lock()
		defer m.mu.Unlock()
		in := m.held
		if m.auto {
			in = bot.Play(p)
		} else if len(m.shots) > 0 {
			in, m.shots = m.shots[0], m.shots[1:]
		}
		m.show(p, in.Look)
		return in
	}
}
