// Package hostile measures the load that hostile clients cause on a dedicated server. These
// authenticated clients do everything that their sessions permit, at the maximum rates. They are
// compared with honest clients that send the same number of datagrams.
package hostile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Target is a running server.
type Target interface {
	Addr() string
	Status(_ struct{}, st *Status) error
	Close() error
}

// Phase is the result of one phase.
type Phase struct {
	Name      string            `json:"phase"`
	Clients   int               `json:"clients"`   // hostile clients, or their replacements
	Share     float64           `json:"core"`      // share of a core that the server used
	Datagrams float64           `json:"datagrams"` // received a second, from all
	SentBytes float64           `json:"sent_bytes"`
	Sent      uint64            `json:"sent"` // frames of the honest players
	Frames    uint64            `json:"frames"`
	Drops     map[string]uint64 `json:"drops"`
	Ended     []string          `json:"ended"` // sessions that ended early: kind and reason
	rates     []float64         // rates of datagrams, by client
}

// kept returns the share of the honest players' frames that were delivered.
func (p *Phase) kept() float64 { return float64(p.Frames) / float64(max(p.Sent, 1)) }

// String formats the phase as a line.
func (p Phase) String() string {
	drops := ""
	for _, reason := range slices.Sorted(maps.Keys(p.Drops)) {
		drops += fmt.Sprintf(", %d %s", p.Drops[reason], reason)
	}
	ended := ""
	if len(p.Ended) > 0 {
		ended = "; ended: " + strings.Join(p.Ended, ", ")
	}
	return fmt.Sprintf("%-8s %d clients: the server uses %.1f %% of a core, receives %.0f datagrams/s, sends %.0f KB/s; honest players keep %d of %d frames%s%s",
		p.Name, p.Clients, 100*p.Share, p.Datagrams, p.SentBytes/1e3, p.Frames, p.Sent, drops, ended)
}

// Result is the result of a run.
type Result struct {
	Hostile Phase   `json:"hostile"`
	Honest  Phase   `json:"honest"`
	Added   float64 `json:"core_per_client"` // additional share of a core per hostile client
}

// String formats the result as a line.
func (r *Result) String() string {
	return fmt.Sprintf("a hostile client costs %.2f %% of a core more than an honest one with as many datagrams", 100*r.Added)
}

// Verdict returns an error if a bound is exceeded.
func (r *Result) Verdict() error {
	var errs []error
	if r.Added > MaxShare {
		errs = append(errs, fmt.Errorf("a hostile client costs %.2f %% of a core more than an honest one, want at most %.0f %%", 100*r.Added, 100*MaxShare))
	}
	for _, p := range []*Phase{&r.Hostile, &r.Honest} {
		if p.kept() < MinKept {
			errs = append(errs, fmt.Errorf("%s phase: the game got %d of %d frames of honest players, want %.1f %%", p.Name, p.Frames, p.Sent, 100*MinKept))
		}
	}
	return errors.Join(errs...)
}

type run struct {
	options Options
	network transport.Network
	start   func() (Target, error)
	target  Target
	next    uint64 // client id of the next attacker
}

// Run measures both phases and calls show after each. start starts a server for each phase. A nil
// network is UDP.
func Run(ctx context.Context, o Options, network transport.Network, start func() (Target, error), show func(Phase)) (*Result, error) {
	r := &run{options: o, network: network, start: start}
	hostile, err := r.phase(ctx, "hostile", nil)
	if err != nil {
		return nil, err
	}
	show(*hostile)
	honest, err := r.phase(ctx, "honest", hostile.rates)
	if err != nil {
		return nil, err
	}
	show(*honest)
	return &Result{Hostile: *hostile, Honest: *honest, Added: (hostile.Share - honest.Share) / float64(o.Hostile)}, nil
}

// other is a hostile client or its replacement.
type other struct {
	*load.Bot
	kind      *kind         // nil: a replacement
	datagrams func() uint64 // number of datagrams sent
}

// turnHz is the number of turns per second of all bots. At each turn, a bot does everything that is
// due.
const turnHz = 200

// ration counts the steps that are due at a rate. After a pause of the process it makes up for only
// a small part, because a larger burst would exceed the limits.
type ration struct {
	rate float64 // steps per second
	last time.Time
	due  float64
}

// take returns the number of steps that became due since the last call.
func (r *ration) take() int {
	now := time.Now()
	if !r.last.IsZero() {
		r.due = min(r.due+now.Sub(r.last).Seconds()*r.rate, 1+r.rate/10)
	}
	r.last = now
	n := int(r.due)
	r.due -= float64(n)
	return n
}

const (
	joinEvery = 60 * time.Millisecond // between two clients: a server admits 20 per second from one network
	warmUp    = 4 * time.Second       // time until all clients reach their rates
	settle    = 500 * time.Millisecond
	settles   = 10

	playerHz = 60
)

// phase measures one phase: with hostile clients or, if rates is not nil, with honest clients at
// these rates of datagrams.
func (r *run) phase(ctx context.Context, name string, rates []float64) (p *Phase, err error) {
	if r.target, err = r.start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.target.Close()) }()
	players := load.NewCrowd(r.options.Players, turnHz, func(ctx context.Context, i int) (*load.Bot, error) {
		return r.player(ctx, i+1, uint64(i+1), playerHz)
	})
	others := make([]other, r.options.Hostile)
	crowd := load.NewCrowd(r.options.Hostile, turnHz, func(ctx context.Context, i int) (b *load.Bot, err error) {
		if rates == nil {
			others[i], err = r.attacker(ctx, i)
		} else {
			others[i], err = r.replacement(ctx, i, max(1, rates[i]))
		}
		return others[i].Bot, err
	})
	defer players.Close()
	defer crowd.Close()
	for i := range r.options.Players {
		if err := players.Join(ctx, i); err != nil {
			return nil, err
		}
	}
	for i := range others {
		if err := crowd.Join(ctx, i); err != nil {
			return nil, err
		}
	}
	return r.measure(ctx, name, players, crowd, others)
}

// player connects an honest client, which subscribes to both worlds. At each turn it calls as many
// RPCs as hz calls per second require.
func (r *run) player(ctx context.Context, number int, id uint64, hz float64) (*load.Bot, error) {
	t, err := r.token(ctx, id)
	if err != nil {
		return nil, err
	}
	conn, err := client.Dial(ctx, r.target.Addr(), client.Config{Token: t, Network: r.network, NoReconnect: true})
	if err != nil {
		return nil, fmt.Errorf("player %d: %w", number, err)
	}
	streams := make([]*client.Stream[move], min(1+int(hz)/maxHz, bindings))
	rate := min(max(hz/float64(len(streams)), 1), maxHz)
	for n := range streams {
		if streams[n], err = client.Bind[move](ctx, conn, moveRPC(n), client.BindConfig{RateHz: rate}); err != nil {
			break
		}
	}
	if err == nil {
		_, err = client.SubscribeSnapshots(ctx, conn, snapshotWorld, client.SnapshotConfig[load.Thing]{})
	}
	if err == nil {
		_, err = client.SubscribeState(ctx, conn, stateWorld, client.StateConfig[load.Thing]{Handle: func(*client.StateUpdate[load.Thing]) {}})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("player %d: %w", number, err), conn.Close())
	}
	due, calls := ration{rate: hz}, 0
	return &load.Bot{Conn: conn, Close: conn.Close, Turn: func() error {
		for range due.take() {
			m := moveAt(number, uint64(calls))
			if _, err := streams[calls%len(streams)].Send(&m); err != nil {
				return fmt.Errorf("player %d: %w", number, err)
			}
			calls++
		}
		return nil
	}}, nil
}

// attacker connects hostile client i.
func (r *run) attacker(ctx context.Context, i int) (o other, err error) {
	all := r.options.chosen()
	o.kind = all[i%len(all)]
	t, err := r.token(ctx, r.id())
	if err != nil {
		return o, err
	}
	a, err := newActor(ctx, r.target.Addr(), r.network, t, o.kind, uint64(i))
	if err != nil {
		return o, err
	}
	o.Bot = &load.Bot{Turn: a.turn, Close: func() error { a.c.Close(); return nil }}
	o.datagrams = a.c.Sent
	return o, nil
}

// replacement connects the honest client that replaces hostile client i and sends hz datagrams per
// second.
func (r *run) replacement(ctx context.Context, i int, hz float64) (o other, err error) {
	o.Bot, err = r.player(ctx, firstOther+i, r.id(), hz)
	o.datagrams = func() uint64 { return o.Conn.Stats().Transport.DatagramsSent }
	return o, err
}

// id returns the client id of the next hostile client or replacement.
func (r *run) id() uint64 {
	r.next++
	return firstOther + r.next
}

// token waits until another client may join, and returns a token for it.
func (r *run) token(ctx context.Context, id uint64) (token.Token, error) {
	if err := sleep.For(ctx, joinEvery); err != nil {
		return token.Token{}, err
	}
	addr, err := netip.ParseAddrPort(r.target.Addr())
	if err != nil {
		return token.Token{}, err
	}
	return load.Issue(token.Development().Issuer(), id, "", addr)
}

func (r *run) measure(ctx context.Context, name string, players, crowd *load.Crowd, others []other) (*Phase, error) {
	stopPlayers, stopOthers := players.Play(0), crowd.Play(0)
	stop := func() {
		stopPlayers()
		stopOthers()
	}
	defer stop()
	if err := sleep.For(ctx, warmUp); err != nil {
		return nil, err
	}
	var before, after Status
	if err := r.target.Status(struct{}{}, &before); err != nil {
		return nil, err
	}
	began, sent := time.Now(), make([]uint64, len(others))
	for i, a := range others {
		sent[i] = a.datagrams()
	}
	if err := sleep.For(ctx, r.options.For); err != nil {
		return nil, err
	}
	if err := r.target.Status(struct{}{}, &after); err != nil {
		return nil, err
	}
	seconds := time.Since(began).Seconds()
	p := &Phase{
		Name: name, Clients: len(others), Share: (after.CPU - before.CPU).Seconds() / seconds,
		Datagrams: float64(after.Datagrams-before.Datagrams) / seconds, SentBytes: float64(after.SentBytes-before.SentBytes) / seconds,
	}
	for i, a := range others {
		p.rates = append(p.rates, float64(a.datagrams()-sent[i])/seconds)
	}
	stop()
	if _, err := players.Ended(); err != nil {
		return nil, err
	}
	p.Sent = players.Sent()
	for range settles { // the last frames may still be in the server's socket
		if err := sleep.For(ctx, settle); err != nil {
			return nil, err
		}
		after = Status{}
		if err := r.target.Status(struct{}{}, &after); err != nil {
			return nil, err
		}
		if p.Frames, p.Drops = after.Frames, after.Drops; p.Frames == p.Sent {
			break
		}
	}
	for _, o := range others {
		switch err := o.Err(); {
		case err != nil && o.kind == nil:
			return nil, err
		case err != nil:
			p.Ended = append(p.Ended, fmt.Sprintf("%s: %v", o.kind.name, err))
		}
	}
	return p, nil
}

// Options configure a run. Errors name the command's flags.
type Options struct {
	Players int           // honest players
	Hostile int           // number of hostile clients, and of honest replacements in the other phase
	For     time.Duration // measured time of each phase
	Kinds   []string      // names of kinds of hostile clients; nil: all
}

// Bounds of Options and of results.
const (
	maxPlayers = 200
	maxHostile = 200
	minFor     = time.Second

	// MaxShare is the maximum additional cost of a hostile client, as a share of a core.
	MaxShare = 0.02
	// MinKept is the minimum share of honest players' frames that must be delivered.
	MinKept = 0.999
)

// Validate returns an error that names an invalid flag.
func (o *Options) Validate() error {
	switch {
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d with --hostile", o.Players, maxPlayers)
	case o.Hostile < 1 || o.Hostile > maxHostile:
		return fmt.Errorf("--hostile %d: want 1 to %d", o.Hostile, maxHostile)
	case o.For < minFor:
		return fmt.Errorf("--for %v: want at least %v", o.For, minFor)
	}
	for _, name := range o.Kinds {
		if !slices.Contains(Kinds(), name) {
			return fmt.Errorf("--kinds %s: want some of %s", name, strings.Join(Kinds(), ","))
		}
	}
	return nil
}

// chosen returns the kinds, in order.
func (o *Options) chosen() (all []*kind) {
	for i := range kinds {
		if o.Kinds == nil || slices.Contains(o.Kinds, kinds[i].name) {
			all = append(all, &kinds[i])
		}
	}
	return all
}
