// Package demo plays recorded traces from many clients to a dedicated server in
// one process, over real UDP sockets with a simulated link between them.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/webserver"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// demo is one run.
type demo struct {
	options Options
	keys    keys
	traces  []*trace.Trace
	srv     *ds.Server
	players []*player

	offsets    sync.Map // session id to the row at which its client began
	mismatches atomic.Uint64
	unchecked  atomic.Uint64
}

// Run plays until the context is done or the time is over, and writes a table
// every second and a summary at the end. It is an error if the server rebuilt a
// frame that differs from the recording.
func Run(ctx context.Context, w io.Writer, o Options) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	d := &demo{options: o}
	if d.traces, err = traces(); err != nil {
		return err
	}
	if err := d.listen(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.srv.Close()) }()
	for _, t := range d.traces {
		if err := ds.HandleSchema(d.srv, t.Schema, d.check(t)); err != nil {
			return err
		}
	}
	served := make(chan error, 1)
	go func() { served <- d.srv.Serve(context.WithoutCancel(ctx)) }()
	if err := d.connect(ctx); err != nil {
		return errors.Join(err, d.hangUp())
	}
	err = d.play(ctx, w, served)
	return errors.Join(err, d.hangUp())
}

// traces gives the recordings, each as an RPC with a name of its own: they all
// have the same.
func traces() ([]*trace.Trace, error) {
	var all []*trace.Trace
	for _, t := range []struct {
		rpc   string
		trace *trace.Trace
	}{{"PortalMove", sample.Portal2()}, {"RocketMove", sample.RocketLeague()}} {
		s, err := rpcdelta.NewSchema(t.rpc, t.trace.Schema.RateHz(), t.trace.Schema.Fields())
		if err != nil {
			return nil, err
		}
		all = append(all, &trace.Trace{Name: t.trace.Name, Schema: s, Frames: t.trace.Frames})
	}
	return all, nil
}

// check holds every frame that the server rebuilt against the recording. A
// session that a client made when its first one was lost began nobody knows
// where.
func (d *demo) check(t *trace.Trace) func(*ds.Player, ds.Frame[*rpcdelta.Frame]) {
	return func(p *ds.Player, f ds.Frame[*rpcdelta.Frame]) {
		offset, ok := d.offsets.Load(p.ID())
		switch {
		case !ok:
			d.unchecked.Add(1)
		case !f.Value.Equal(t.At(offset.(int) + int(f.Seq))):
			d.mismatches.Add(1)
		}
	}
}

// connect makes the clients, all at once.
func (d *demo) connect(ctx context.Context) error {
	network, err := d.options.Link.Network()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	cfg := client.Config{Network: network, Codec: d.options.Codec, BindTimeout: patience}
	d.players = make([]*player, d.options.Clients)
	errs := make(chan error)
	for i := range d.players {
		go func() {
			errs <- d.join(ctx, i, cfg)
		}()
	}
	failed := 0
	for range d.players {
		if e := <-errs; e != nil {
			failed, err = failed+1, e
		}
	}
	if err != nil {
		return fmt.Errorf("%d of %d clients could not connect over a link with %v: %w", failed, d.options.Clients, &d.options.Link, err)
	}
	return nil
}

// join makes client i.
func (d *demo) join(ctx context.Context, i int, cfg client.Config) error {
	cfg, err := d.admit(ctx, i, cfg)
	if err != nil {
		return err
	}
	t := d.traces[i%len(d.traces)]
	p, err := newPlayer(ctx, d.srv.Addr().String(), cfg, t, i*len(t.Frames)/d.options.Clients)
	if err != nil {
		return err
	}
	d.players[i] = p
	d.offsets.Store(p.conn.ID(), p.offset)
	return nil
}

// hangUp closes the clients, all at once.
func (d *demo) hangUp() error {
	errs := make(chan error)
	for _, p := range d.players {
		go func() {
			if p == nil {
				errs <- nil
				return
			}
			errs <- p.conn.Close()
		}()
	}
	var err error
	for range d.players {
		err = errors.Join(err, <-errs)
	}
	return err
}

// introduction says what runs and how to read the table.
const introduction = `%d clients play Portal 2 and Rocket League to a dedicated server at %v.
Link: %v; codec %v; suite %v.
Dashboard: %s
Metrics: %s
kbit/s: full as an engine packs calls; sent by uplink, headers included, and its
ratio to that; wire with seals, UDP and IP, by parts below. intra: calls sent
without a baseline. Ctrl-C ends it.
`

// play has the clients send, and shows what comes of it.
func (d *demo) play(ctx context.Context, w io.Writer, served <-chan error) error {
	web, err := webserver.Start(webserver.Config{
		Addr: d.options.Metrics, Token: d.options.HTTPToken, Source: d.srv,
		Collectors: []prometheus.Collector{metrics.NewServer(d.srv), metrics.NewClient(d.conns()...)},
		Dashboard:  dashboard.Config{Title: "demo", Name: d.name},
	})
	if err != nil {
		return err
	}
	defer web.Close() //nolint:errcheck // the demo is over
	fmt.Fprintf(w, introduction, d.options.Clients, d.srv.Addr(), &d.options.Link, d.options.Codec, d.options.Suite, web.URL(), web.MetricsURL())
	if d.options.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.options.For)
		defer cancel()
	}
	var senders sync.WaitGroup
	for _, p := range d.players {
		senders.Go(func() { p.play(ctx) })
	}
	begin := time.Now()
	before := d.observe()
	table := newTable(w, d.options.Live)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for shown := begin; ; {
		select {
		case err := <-served:
			return err
		case now := <-tick.C:
			o := d.observe()
			table.draw(o.since(before), now.Sub(shown))
			before, shown = o, now
		case <-ctx.Done():
			senders.Wait()
			played := time.Since(begin)
			time.Sleep(d.options.Link.Drained() + 50*time.Millisecond) // the last frames are on their way
			table.summary(d.observe(), played)
			return d.verdict(w)
		}
	}
}

// name is what the dashboard calls a player.
func (d *demo) name(p *ds.Player) string {
	n := int(p.ClientID())
	if n < 1 || n > len(d.players) {
		return ""
	}
	return fmt.Sprintf("%s %d", d.players[n-1].trace.Schema.RPC(), n)
}

func (d *demo) conns() []*client.Conn {
	var conns []*client.Conn
	for _, p := range d.players {
		conns = append(conns, p.conn)
	}
	return conns
}

// verdict says whether all went well.
func (d *demo) verdict(w io.Writer) error {
	wrong := d.mismatches.Load()
	fmt.Fprintf(w, "Different from what was recorded: %d.\n", wrong)
	if n := d.unchecked.Load(); n != 0 {
		fmt.Fprintf(w, "Came after a reconnection and were not compared: %d.\n", n)
	}
	if wrong != 0 {
		return fmt.Errorf("%d frames differ from what was recorded", wrong)
	}
	for _, p := range d.players {
		if p.err != nil {
			return p.err
		}
	}
	return nil
}
