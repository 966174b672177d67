package rerun

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// quiet is the number of successive checks without a new result after which settle gives up.
// Counting checks instead of time makes it independent of pauses of the machine.
const quiet = 200

// PlaySelf replays a plan to a server in this process, over a network without loss, and compares
// all results with the plan.
func PlaySelf(ctx context.Context, plan *Plan, o Options) (out Report, err error) {
	network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
	if err != nil {
		return out, err
	}
	key, err := token.NewKey()
	if err != nil {
		return out, err
	}
	c := &comparison{players: map[uint64]map[int][]string{}}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{
		Key: key, Tuning: ds.Tuning{Ring: plan.ring, DeliverLate: plan.late, Priors: plan.priors}, Limits: ds.Limits{RateSlack: 1e6, MaxRate: 1000},
		MaxPlayers: len(plan.sessions) + 1, OnMessage: func(*ds.Player, []byte) {}, Network: network, Hooks: ds.Hooks{Tap: c},
	})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	for _, s := range plan.schemas {
		if err := ds.HandleSchema(srv, s, func(*ds.Player, ds.Frame[*schema.Frame]) {}); err != nil {
			return out, err
		}
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.WithoutCancel(ctx)) }()
	o.To, o.Network, o.Suites = srv.Addr().String(), network, nil
	o.Token = func(_ context.Context, client uint64) (token.Token, error) {
		return token.Issue(key.Issuer(), token.Claims{ClientID: client, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{srv.Addr()}})
	}
	out, err = Play(ctx, plan, o)
	c.settle(ctx, plan)
	err = errors.Join(err, srv.Close(), <-served)
	c.compare(plan, &out)
	return out, err
}

// comparison is the tap of that server.
type comparison struct {
	payloads atomic.Uint64

	mu      sync.Mutex
	players map[uint64]map[int][]string // results of payloads, by client and RPC number
}

// settle waits until all payloads have a result, or no more results follow.
func (c *comparison) settle(ctx context.Context, plan *Plan) {
	want := uint64(0)
	for _, s := range plan.sessions {
		for _, e := range s.expect {
			want += uint64(len(e))
		}
	}
	for last, looks := c.payloads.Load(), 0; last < want && looks < quiet; looks++ {
		if sleep.For(ctx, soon) != nil {
			return
		}
		if n := c.payloads.Load(); n != last {
			last, looks = n, 0
		}
	}
}

func (c *comparison) compare(plan *Plan, out *Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range plan.sessions {
		for rpc, want := range s.expect {
			got := c.players[s.player][rpc]
			for i := range want {
				switch {
				case i >= len(got):
					out.Missing++
				case got[i] == want[i], want[i] == anything:
					out.Same++
				default:
					out.Different++
					if out.First == "" {
						out.First = fmt.Sprintf("player %d, RPC %d, payload %d: %s, was %s", s.player, rpc, i+1, got[i], want[i])
					}
				}
			}
		}
	}
}

func (c *comparison) Joined(p *ds.Player, _ transport.Suite) ds.PlayerTap {
	c.mu.Lock()
	defer c.mu.Unlock()
	rpcs := map[int][]string{}
	c.players[p.ClientID()] = rpcs
	return &compared{comparison: c, rpcs: rpcs}
}

func (c *comparison) Counted(transport.ListenerStats) {}
func (c *comparison) Resets() uint64                  { return 0 }

type compared struct {
	*comparison
	rpcs map[int][]string
}

func (c *compared) note(rpc int, what string) {
	c.mu.Lock()
	c.rpcs[rpc] = append(c.rpcs[rpc], what)
	c.mu.Unlock()
	c.payloads.Add(1)
}

func (c *compared) Decoded(_ time.Time, rpc int, frames []rpcdelta.Delivery) {
	c.note(rpc, taken(len(frames), frames[len(frames)-1].Kind, capture.Hash(frames)))
}

func (c *compared) Dropped(_ time.Time, rpc int, d ds.Drop, _ bool) {
	if rpc >= 0 {
		c.note(rpc, d.String())
	}
}

func (c *compared) Bound(ds.Binding)                         {}
func (c *compared) Withheld(time.Time, int, uint64, ds.Drop) {}
func (c *compared) Carried(transport.TapEvent)               {}
func (c *compared) Left(error)                               {}
