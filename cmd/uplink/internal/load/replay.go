package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const settling = 300 * time.Millisecond

// ErrSilence reports that the server did not answer within Options.Wait.
var ErrSilence = errors.New("waited")

// replay is the scenario of uplink bots: each bot repeats a trace, starting at a row of its own.
type replay struct {
	*Crowd
	options Options
	traces  []*trace.Trace
	network transport.Network
	firstID uint64 // client id of bot 0; concurrent runs at one server need different ones
}

// Run connects bots over the ramp, plays traces for Options.For or until ctx is done, and
// disconnects. The report covers the time after all bots connected. If ctx was done before that, it
// covers the whole time. watch is called each second.
//
// If the first bot cannot connect, Run returns its error without a report. Errors of other bots are
// returned with the report.
func Run(ctx context.Context, traces []*trace.Trace, o Options, watch func(Progress)) (*Report, error) {
	r, err := newReplay(traces, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.Join(ctx, 0); err != nil {
		return nil, err
	}
	stop := r.Play(o.RebindEvery)
	defer stop()

	joining, joined := context.WithCancel(ctx)
	defer joined()
	ramped := make(chan struct{})
	go func() {
		defer close(ramped)
		r.Ramp(ctx, 1, o.Ramp)
		joined()
	}()
	begin := r.observe()
	end := r.watch(joining, begin, watch)
	if ctx.Err() == nil {
		begin = r.observe()
		r.late, r.trips = meter.NewDurations(), meter.NewDurations() // all bots have joined
		playing, cancel := Until(ctx, o.For)
		defer cancel()
		end = r.watch(playing, begin, watch)
	}
	<-ramped
	stop()
	time.Sleep(settling + o.Link.Drained())
	settled := r.observe()
	settled.at, settled.cpu = end.at, end.cpu
	return r.report(begin, settled), r.verdict()
}

func newReplay(traces []*trace.Trace, o Options) (*replay, error) {
	network, err := o.network()
	if err != nil {
		return nil, err
	}
	r := &replay{options: o, traces: traces, network: network, firstID: rand.Uint64()}
	r.Crowd = NewCrowd(o.Players, o.Rate, r.connect)
	if o.Rate == 0 {
		return r, nil
	}
	r.traces = nil
	for _, t := range traces {
		schema, err := t.Schema.AtRate(o.Rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		r.traces = append(r.traces, &trace.Trace{Name: t.Name, Schema: schema, Frames: t.Frames})
	}
	return r, nil
}

func (r *replay) connect(ctx context.Context, i int) (*Bot, error) {
	t := r.traces[i%len(r.traces)]
	silence := fmt.Errorf("%w %v (--wait)", ErrSilence, r.options.Wait)
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Wait, silence)
	defer cancel()
	b := new(Bot)
	addr, cfg, err := r.client(ctx, i, b)
	if err != nil {
		return nil, err
	}
	conn, stream, err := Bind(ctx, addr, cfg, t)
	if err != nil {
		return nil, err
	}
	b.current.Store(conn)
	if r.options.Joined != nil {
		if err := r.options.Joined(ctx, conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	row := i * len(t.Frames) / r.options.Players
	b.Conn, b.Close = conn, conn.Close
	b.Turn = func() error {
		_, err := stream.Send(t.At(row))
		if row++; err != nil {
			err = fmt.Errorf("%s: row %d: %w", t.Name, (row-1)%len(t.Frames)+1, err)
		}
		return err
	}
	return b, nil
}

// Until returns a context that ends after d, or with ctx if d is 0.
func Until(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
}

// watch observes the bots each second until ctx is done, and returns the last observation.
func (r *replay) watch(ctx context.Context, first observation, show func(Progress)) observation {
	before := first
	for range sleep.Every(ctx, time.Second) {
		now := r.observe()
		show(r.progress(first, before, now))
		before = now
	}
	return r.observe()
}

func (r *replay) verdict() error {
	var errs []error
	if failed, cause := r.Failures(); failed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d players could not connect: %w", failed, r.options.Players, cause))
	}
	switch ended, cause := r.Ended(); {
	case errors.Is(cause, transport.ErrKicked):
		errs = append(errs, fmt.Errorf("the server threw %d of %d players out: %w", ended, r.options.Players, cause))
	case cause != nil:
		errs = append(errs, fmt.Errorf("%d of %d players stopped: %w", ended, r.options.Players, cause))
	}
	return errors.Join(errs...)
}

const (
	maxPlayers = 60_000 // each has its own UDP port
	maxRate    = 1000
	// minRebind is the minimum time between rebinds that a server can follow.
	minRebind = time.Second
)

// Options configure a run. Errors name the command's flags.
type Options struct {
	To         string // address of the server
	Players    int
	Rate       float64       // calls per second of each player; 0: idle
	Ramp       time.Duration // time over which they join
	For        time.Duration // time to play after all have joined; 0: until the context is done
	Wait       time.Duration // maximum time for answers of the server
	Codec      rpcdelta.Codec
	Preset     client.Preset
	Redundancy int // as in client.Config
	Link       simlink.Config
	Suites     []transport.Suite
	Insecure   bool // as in client.Config; see Suites
	// Issuer issues the bots' tokens. With the zero key, bots have no tokens.
	Issuer token.IssuerKey
	Route  string // route id of tokens that Issuer issues
	// Assign, if set, gets server and token of a client instead, as from a game's backend. avoid
	// are addresses of servers that do not answer.
	Assign func(ctx context.Context, client uint64, avoid []string) (addr string, t token.Token, err error)
	// Others are further servers that these tokens permit.
	Others []netip.AddrPort
	// Joined, if set, is called with each bot's connection when its RPC is bound.
	Joined func(context.Context, *client.Conn) error
	// RebindEvery is the interval at which each bot rebinds to another socket; 0: never.
	RebindEvery time.Duration
	Network     transport.Network // nil: UDP
	// KeyLog receives the secrets of all sessions; nil: none.
	KeyLog io.Writer
}

// Validate returns an error that names an invalid flag.
func (o *Options) Validate() error {
	switch {
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d", o.Players, maxPlayers)
	case o.Rate != 0 && !(o.Rate >= 1 && o.Rate <= maxRate):
		return fmt.Errorf("--rate %v: want 1 to %d calls a second, or 0 for players who stay idle", o.Rate, maxRate)
	case o.Ramp < 0:
		return fmt.Errorf("--ramp %v: want 0s or more", o.Ramp)
	case o.For < 0:
		return fmt.Errorf("--for %v: want 0s, which is until Ctrl-C, or more", o.For)
	case o.RebindEvery != 0 && o.RebindEvery < minRebind:
		return fmt.Errorf("--rebind-every %v: want 0s, which is never, or at least %v", o.RebindEvery, minRebind)
	case o.Wait <= 0:
		return fmt.Errorf("--wait %v: want more than 0s", o.Wait)
	}
	return o.Link.Validate()
}

// client returns the server, the configuration and the identity of bot i.
func (r *replay) client(ctx context.Context, i int, b *Bot) (addr string, c client.Config, err error) {
	o := &r.options
	c = client.Config{
		OnEvent: func(e client.Event) {
			if e.Handover == client.HandoverCompleted {
				b.handovers.Add(1)
			}
		},
		Transport: client.Transport{KeyLog: o.KeyLog, Suites: o.Suites, Insecure: o.Insecure, BindTimeout: o.Wait},
		Network:   r.network, Tuning: client.Tuning{Codec: o.Codec, Redundancy: o.Redundancy}, Preset: o.Preset,
	}
	if o.Assign != nil {
		c.Assign = func(ctx context.Context) (string, token.Token, error) {
			var avoid []string
			if conn := b.current.Load(); conn != nil {
				avoid = append(avoid, conn.Server())
			}
			return o.Assign(ctx, r.firstID+uint64(i), avoid)
		}
		addr, c.Token, err = c.Assign(ctx)
		return addr, c, err
	}
	if o.Issuer.IsZero() {
		return o.To, c, nil
	}
	c.Renew = func(context.Context) (token.Token, error) {
		server, err := Resolve(o.To)
		if err != nil {
			return token.Token{}, err
		}
		return Issue(o.Issuer, r.firstID+uint64(i), o.Route, append([]netip.AddrPort{server}, o.Others...)...)
	}
	c.Token, err = c.Renew(ctx)
	return o.To, c, err
}

// Resolve returns the address of a server in the form that tokens contain.
func Resolve(addr string) (netip.AddrPort, error) {
	server, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(server.AddrPort().Addr().Unmap(), server.AddrPort().Port()), nil
}

// Issue issues a token for a client and servers, with a route id, valid for a minute, as a backend
// does.
func Issue(key token.IssuerKey, client uint64, route string, servers ...netip.AddrPort) (token.Token, error) {
	return token.Issue(key, token.Claims{
		ClientID: client, Expires: time.Now().Add(time.Minute), Servers: servers, Route: []byte(route),
	})
}

func (o *Options) network() (transport.Network, error) {
	inner := o.Network
	if inner == nil {
		inner = transport.UDP()
	}
	up, down := o.Link.Up(), o.Link.Down()
	switch {
	case o.Link.Perfect():
		return inner, nil
	case o.Link.RTT == 0 && o.Link.Jitter == 0:
		return newLossyNetwork(inner, up, down)
	}
	return simnet.WrapNetwork(inner, up, down)
}
