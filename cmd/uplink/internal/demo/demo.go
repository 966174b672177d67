// Package demo plays recorded traces from many clients to a dedicated server in one process, over
// real UDP sockets with a simulated link between them.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/debugserver"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/demopanel"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/playground"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/webserver"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type demo struct {
	options Options
	key     token.Key // temporary issuer and server key
	traces  []*trace.Trace
	srv     *ds.Server
	players []*player
	crowds  []*load.Crowd // players' crowds, by trace
	world   *playground.World

	stage     *demopanel.Stage
	network   *simnet.WrappedNetwork
	collector *metrics.Client
	changed   chan struct{}  // holds a token if the codec or preset may have changed
	closing   sync.WaitGroup // replaced connections

	places     sync.Map // session id to the place of the session's first frame
	mismatches atomic.Uint64
	unchecked  atomic.Uint64

	mu       sync.Mutex
	settings demopanel.Settings
	traffic  demopanel.Traffic // during the last second
}

// place is the row of a player's trace that the first frame of a session has.
type place struct{ player, row int }

// margin is an additional delay for the last frames.
const margin = 50 * time.Millisecond

func newDemo(o Options) (*demo, error) {
	d := &demo{options: o, changed: make(chan struct{}, 1)}
	d.settings = demopanel.Settings{Link: o.Link, Codec: o.Codec, Preset: o.Preset, Redundancy: rpcdelta.RedundancyAuto}
	var err error
	if d.traces, err = traces(); err != nil {
		return nil, err
	}
	if d.network, err = o.Link.Network(); err != nil {
		return nil, err
	}
	if d.world, err = playground.NewWorld(); err != nil {
		return nil, err
	}
	var played []*trace.Trace
	for i := range o.Clients {
		t := d.traces[i%len(d.traces)]
		d.players = append(d.players, &player{index: i, trace: t, row: i * len(t.Frames) / o.Clients})
		played = append(played, t)
	}
	for _, t := range d.traces {
		var members []*player
		for _, p := range d.players {
			if p.trace == t {
				members = append(members, p)
			}
		}
		d.crowds = append(d.crowds, load.NewCrowd(len(members), t.Schema.RateHz(), func(ctx context.Context, i int) (*load.Bot, error) {
			return d.join(ctx, members[i])
		}))
	}
	d.stage = demopanel.NewStage(played)
	return d, nil
}

// Run plays until the context is done or the time has passed, and writes a table every second and a
// summary at the end. It returns an error if the server decoded a frame that differs from the
// recording.
func Run(ctx context.Context, w io.Writer, o Options) (err error) {
	d, err := newDemo(o)
	if err != nil {
		return err
	}
	if err := d.listen(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.srv.Close()) }()
	served := make(chan error, 1)
	go func() { served <- d.srv.Serve(context.WithoutCancel(ctx)) }()
	if err := d.connect(ctx); err != nil {
		d.hangUp()
		return err
	}
	defer d.hangUp()
	return d.play(ctx, w, served)
}

// traces returns the recordings, each with an RPC name of its own.
func traces() ([]*trace.Trace, error) {
	all := []*trace.Trace{sample.Portal2(), sample.RocketLeague()}
	for i, rpc := range []string{"PortalMove", "RocketMove"} {
		t := all[i]
		s, err := schema.New(rpc, t.Schema.RateHz(), t.Schema.Fields())
		if err != nil {
			return nil, err
		}
		all[i] = &trace.Trace{Name: t.Name, Schema: s, Frames: t.Frames}
	}
	return all, nil
}

// check compares every frame that the server decoded with the recording. It skips sessions with an
// unknown first row, such as a session that replaced a lost one.
func (d *demo) check(t *trace.Trace) func(*ds.Player, ds.Frame[*schema.Frame]) {
	return func(p *ds.Player, f ds.Frame[*schema.Frame]) {
		v, ok := d.places.Load(p.ID())
		if !ok {
			d.unchecked.Add(1)
			return
		}
		from := v.(place)
		n := from.row + int(f.Seq)
		if !f.Value.Equal(t.At(n)) {
			d.mismatches.Add(1)
		}
		d.stage.Rebuilt(from.player, n, f.Value, f.Redundant)
	}
}

func (d *demo) connect(ctx context.Context) error {
	var all sync.WaitGroup
	for _, c := range d.crowds {
		all.Go(func() { c.Ramp(ctx, 0, 0) })
	}
	all.Wait()
	failed, first := 0, ctx.Err()
	for _, c := range d.crowds {
		n, err := c.Failures()
		failed, first = failed+n, cmp.Or(first, err)
	}
	if first == nil {
		return nil
	}
	const format = "%d of %d clients could not connect over a link with %v: %w"
	return fmt.Errorf(format, failed, d.options.Clients, &d.options.Link, first)
}

func (d *demo) hangUp() {
	for _, c := range d.crowds {
		d.closing.Go(c.Close)
	}
	d.closing.Wait()
}

const introduction = `%d clients play Portal 2 and Rocket League to a dedicated server at %v.
Link: %v; codec %v; preset %s; suite %v.
Dashboard: %s
Metrics: %s
kbit/s with all headers down to IP: full frames, each once in an encrypted
datagram of its own; up, sent by clients; down, acks sent to them. The ratio is
up and down to full: above 1 where calls are repeated because of losses. Acks
are added to the messages of a world of bots; its bits are on the dashboard.
Delivery is what the server received. Ctrl-C ends the demo.
`

func (d *demo) play(ctx context.Context, w io.Writer, served <-chan error) error {
	d.collector = metrics.NewClient(d.conns()...)
	web, err := webserver.Start(d.web())
	if err != nil {
		return err
	}
	defer web.Close() //nolint:errcheck // the demo has ended
	fmt.Fprintf(d.options.prose(w), introduction, d.options.Clients, d.srv.Addr(), &d.options.Link, d.options.Codec, cmp.Or(d.options.Preset.Name, "none"), d.options.suite(), web.URL(), web.MetricsURL())
	ctx, cancel := load.Until(ctx, d.options.For)
	var senders sync.WaitGroup
	for _, c := range d.crowds {
		stop := c.Play(0)
		senders.Go(func() {
			<-ctx.Done()
			stop()
		})
	}
	senders.Go(func() { d.follow(ctx) })
	replicated := make(chan error, 1)
	senders.Go(func() { replicated <- d.world.Run(ctx, nil) })
	defer senders.Wait()
	defer cancel()
	begin := time.Now()
	before, shown := d.observe(), begin
	table := newPrinter(w, &d.options)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-served:
			return err
		case now := <-tick.C:
			o := d.observe()
			last, took := o.since(before), now.Sub(shown)
			d.measured(last, took)
			table.draw(last, took)
			before, shown = o, now
		case <-ctx.Done():
			senders.Wait()
			played := time.Since(begin)
			link := d.Settings().Link
			time.Sleep(link.Drained() + margin) // the last frames are in flight
			table.summary(d.observe(), played)
			return errors.Join(d.verdict(d.options.prose(w)), <-replicated)
		}
	}
}

// name returns a player's name for the dashboard.
func (d *demo) name(p *ds.Player) string {
	i := (p.ClientID() - 1) % uint64(len(d.players)) // see dial
	return fmt.Sprintf("%s %d", d.players[i].trace.Schema.RPC(), i+1)
}

func (d *demo) web() webserver.Config {
	handlers := map[string]http.Handler{"/demo/": demopanel.New(d, d.stage).Handler()}
	if d.options.Debug {
		handlers["/debug/"] = debugserver.Handler(func() any { return debugserver.Stats(d.srv.Stats()) })
	}
	return webserver.Config{
		Addr: d.options.Metrics, Token: d.options.HTTPToken, Source: d.srv, Handlers: handlers,
		Collectors: append([]prometheus.Collector{metrics.NewServer(d.srv), d.collector}, d.options.Collectors...),
		Dashboard:  dashboard.Config{Title: "demo", Name: d.name, Sent: d.sent, Extension: "demo"},
	}
}

// sent returns the statistics of the clients, by RPC.
func (d *demo) sent() (all []ds.RPCStats) {
	for _, t := range d.traces {
		r := ds.RPCStats{Payloads: endpoint.Payloads{RPC: t.Schema.RPC()}}
		for _, p := range d.players {
			if p.trace != t {
				continue
			}
			st := p.stats()
			r.Add(&st.Stats)
			r.AddPayloads(&st.Payloads)
		}
		all = append(all, r)
	}
	return all
}

func (d *demo) conns() []*client.Conn {
	var conns []*client.Conn
	for _, p := range d.players {
		conn, _ := p.now()
		conns = append(conns, conn)
	}
	return conns
}

func (d *demo) verdict(w io.Writer) error {
	wrong := d.mismatches.Load()
	fmt.Fprintf(w, "Different from what was recorded: %d.\n", wrong)
	if n := d.unchecked.Load(); n != 0 {
		fmt.Fprintf(w, "Came after a reconnection and were not compared: %d.\n", n)
	}
	if wrong != 0 {
		return fmt.Errorf("%d frames differ from what was recorded", wrong)
	}
	for _, c := range d.crowds {
		if _, err := c.Ended(); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) listen() (err error) {
	if d.key, err = token.NewKey(); err != nil {
		return err
	}
	d.srv, err = ds.Listen("127.0.0.1:0", ds.Config{
		Key: d.key, Transport: ds.Transport{Suites: d.options.permitted(), Insecure: d.options.insecure(), KeyLog: d.options.KeyLog}, Hooks: ds.Hooks{Tap: d.options.Tap},
		MaxPlayers: 2 * len(d.players), Joined: d.joined, Left: d.left,
	})
	if err != nil {
		return err
	}
	for _, t := range d.traces {
		if err := ds.HandleSchema(d.srv, t.Schema, d.check(t)); err != nil {
			return errors.Join(err, d.srv.Close())
		}
	}
	return nil
}

// suite is the suite of the first connections.
func (o *Options) suite() transport.Suite {
	switch {
	case o.Suites != nil:
		return o.Suites[0]
	case o.Preset.Name != "":
		return o.Preset.Suite
	}
	return transport.AES128GCM
}

// permitted returns the suites for the server's config.
func (o *Options) permitted() []transport.Suite {
	if o.Suites == nil {
		return []transport.Suite{transport.AES128CTRHMAC8, transport.AES128GCM, transport.ChaCha20Poly1305}
	}
	return o.Suites
}

// insecure reports whether a suite needs the user's permission.
func (o *Options) insecure() bool { return slices.Contains(o.Suites, transport.None) }

const (
	maxClients = 1000
	// patience is the maximum time for clients to connect.
	patience = 20 * time.Second
)

// Options configure a demo. Errors name the command's flags.
type Options struct {
	Link    simlink.Config
	Clients int
	Codec   rpcdelta.Codec
	Preset  client.Preset
	Suites  []transport.Suite // nil: those of the preset
	For     time.Duration     // 0: until the context is done
	Metrics string            // address of the dashboard and /metrics
	Tap     ds.Tap            // tap of the server; may be nil
	// Collectors are served at /metrics in addition to the server's.
	Collectors []prometheus.Collector
	Debug      bool      // serve /debug/ at the same address
	JSON       bool      // write lines of JSON only
	Live       bool      // redraw the table in place
	KeyLog     io.Writer // receives the secrets of all sessions; nil: none
	// HTTPToken admits to the dashboard. If it is empty, a loopback address requires no token, and
	// other addresses get a random one.
	HTTPToken string
}

// Validate returns an error that names an invalid flag.
func (o *Options) Validate() error {
	switch {
	case o.Clients < 1 || o.Clients > maxClients:
		return fmt.Errorf("--clients %d: want 1 to %d", o.Clients, maxClients)
	case o.HTTPToken != "" && len(o.HTTPToken) < dashboard.MinToken:
		return fmt.Errorf("--http-token: want %d characters or more", dashboard.MinToken)
	case o.For < 0:
		return fmt.Errorf("--for %v: want 0s, which is until Ctrl-C, or more", o.For)
	}
	return o.Link.Validate()
}

// prose returns the writer for text, which --json discards.
func (o *Options) prose(w io.Writer) io.Writer {
	if o.JSON {
		return io.Discard
	}
	return w
}
