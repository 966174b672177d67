package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/debugserver"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/dsreport"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/playground"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/webserver"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	statuspage "github.com/uplink-rpc/uplink/internal/status"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
	"github.com/uplink-rpc/uplink/token"
)

type dsOptions struct {
	listen, record         string
	recordMax              byteSize
	recordKeep             int
	metrics, httpToken     string
	keys                   []string
	route, relayKey        string
	serverID               uint16
	addrs, schemas, priors []string
	sealing                sealing
	capturing              capturing
	fleet                  fleetOptions
	drain                  drainOptions
	agones                 agonesOptions
	ackHz                  float64
	ring, maxPlayers       int
	shards                 int
	report                 time.Duration
	json, debug, world     bool
	logging                logging
}

func newDSCommand() *cobra.Command {
	var o dsOptions
	c := &cobra.Command{
		Use:   "ds --schema FILE",
		Short: "Run a dedicated server that counts and records RPCs",
		Long: `ds is a dedicated server without a game: it accepts the RPCs of schema files, decodes and counts their frames, and can
write them to a file.

On loopback it needs no keys. On other addresses it needs a server key from uplink keygen, and admits clients with a
connect token that was issued with the issuer key. A token names the address that the client dials: that of --listen,
or those of --addr.

To replace the key without a restart, give the new and the old one, each with --key. Issue tokens with the new issuer
key, and remove the old key when its last token has expired. ds reads the files of --key again when it receives SIGHUP.

With --report it prints the load at each interval and for the whole time at the end: frames per second, the time from
the socket to the handler, CPU time, and drops by reason. Time in the kernel's buffer is not measured; if that buffer
overflows, the drops have the reason "kernel".

--world serves a demo world, to try a client in any language: snapshots of the world "bots" at 20 Hz, with areas, for
64 players; the reliable server call "Notice" (Tick uint32, Players uint8) once a second; a reliable message and the
stream "lines.txt" for each player. Reliable messages and requests come back, a stream is answered with its size.

--metrics also serves a dashboard, at / of that address: bit rates, bits by field, and the players with the worst
connections. On loopback it needs no token. On other addresses it is read-only and needs the token of --http-token, or
a random one that is printed as part of the URL. Set --http-token behind a reverse proxy too: without a token, only
programs of this machine are served. /metrics needs none, nor do /healthz, which answers while the process runs, and
/readyz, whose status is 503 while the server drains.

--fleet makes the server part of a fleet, whose state uplink backend keeps: a token starts one session in the fleet, a
client plays on one server, and the backend finds servers by their load and --label.

At the first interrupt or SIGTERM, a server with --fleet or --drain-to drains: it refuses new players, hands the others
over to those servers, and ends when they have left, at the latest after --drain-timeout or with a second signal.
Without them it ends at once; clients reconnect if there is a server again.

--agones is for a server that Agones runs in Kubernetes. It reports that the server is ready, its health, and its
players and capacity as labels, gets the public address that tokens name, and asks to be removed at the end.`,
		Example: `  uplink ds --listen 127.0.0.1:7777 --metrics 127.0.0.1:9464 --schema ServerMove.schema.json
  uplink ds --schema ServerMove.schema.json --record out.csv.gz
  uplink ds --world
  uplink ds --schema ServerMove.schema.json --report 1s --max-players 4000 --shards 2
  uplink ds --schema ServerMove.schema.json --capture out.uplink
  uplink ds --schema ServerMove.schema.json --fleet http://127.0.0.1:8080/fleet/ --fleet-name eu-1 --label map=dust
  uplink ds --schema ServerMove.schema.json --drain-to 127.0.0.1:7778,127.0.0.1:7779
  uplink ds --schema ServerMove.schema.json --key ds.key --listen 0.0.0.0:7777 --addr 203.0.113.7:7777`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return runDS(cmd, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7777", "UDP address of the server; port 0: any free one")
	f.StringArrayVar(&o.keys, "key", nil, fmt.Sprintf("file with a server key from uplink keygen; loopback needs none; may be repeated, up to %d times", endpoint.MaxKeys))
	f.StringVar(&o.route, "route", "", "route id of this server behind a proxy, which tokens must have")
	f.Uint16Var(&o.serverID, "server-id", 0, "number of this server behind a proxy, in connection ids; 0: none")
	f.StringVar(&o.relayKey, "relay-key", "", "file with the key of proxy and servers, 64 hexadecimal digits; then only proxies reach the server")
	f.StringArrayVar(&o.addrs, "addr", nil, "address that clients dial and tokens name, if not that of --listen; may be repeated")
	f.StringVar(&o.metrics, "metrics", "", "address of an HTTP server with a dashboard at / and with /metrics; empty: none")
	f.StringVar(&o.httpToken, "http-token", "", "token for the dashboard, 16 characters or more; by default a random one on addresses other than loopback")
	f.BoolVar(&o.debug, "debug", false, debugUsage)
	f.StringArrayVar(&o.schemas, schemaFlag, nil, "schema file of an RPC; may be repeated")
	f.StringArrayVar(&o.priors, priorFlag, nil, "prior from uplink train that clients may use; may be repeated")
	f.BoolVar(&o.world, "world", false, "serve a demo world with areas, server calls, reliable messages and streams, for clients in any language")
	f.StringVar(&o.record, "record", "", "write each frame to this .csv or .csv.gz file, and its schema to NAME.schema.json")
	o.recordMax = 256 << 20
	f.Var(&o.recordMax, "record-max", "maximum size of a file of --record; then the next one starts: out.csv.gz, out.1.csv.gz ...")
	f.IntVar(&o.recordKeep, "record-keep", 4, "number of files of --record kept; the oldest is removed")
	f.Float64Var(&o.ackHz, "ack-hz", ds.DefaultAckHz, "acks per second and player")
	f.IntVar(&o.ring, "ring", rpcdelta.DefaultRing, "ring size per RPC and player, in frames")
	f.IntVar(&o.maxPlayers, "max-players", endpoint.DefaultMaxConns, "maximum number of players")
	f.IntVar(&o.shards, "shards", 1, "sockets with a goroutine each that receive, decode and answer; more than 1 on Linux only")
	f.DurationVar(&o.report, "report", 0, "print the load at this interval; 0s: never")
	o.fleet.addFlags(f)
	o.drain.addFlags(f)
	o.agones.addFlags(f)
	o.capturing.addFlags(f, "--record and --capture")
	f.BoolVar(&o.json, "json", false, "print the lines of --report as JSON, one object each, and nothing else")
	o.sealing.addFlags(f, "listen on addresses other than loopback with a public test key, and permit --suite none")
	o.logging.addFlags(c)
	return c
}

func (o *dsOptions) check() error {
	if len(o.schemas) == 0 && !o.world {
		return errors.New("--schema: name the schema file of an RPC, such as one beside a trace, or set --world")
	}
	if o.record != "" && len(o.schemas) != 1 {
		return fmt.Errorf("--record: a file contains the frames of one RPC, but there are %d --schema; leave --record out, or run a server for each", len(o.schemas))
	}
	if !(o.ackHz >= 1 && o.ackHz <= 1000) {
		return fmt.Errorf("--ack-hz %v: want 1 to 1000 acks a second", o.ackHz)
	}
	if _, err := parseServers("addr", o.addrs); err != nil {
		return err
	}
	if err := cmp.Or(checkAddress("listen", o.listen), checkMetrics(o.metrics)); err != nil {
		return err
	}
	switch {
	case len(o.keys) > 0 && len(o.addrs) == 0 && !o.agones.on && isEverywhere(o.listen):
		return fmt.Errorf("--listen %s: these are all addresses of the machine, but tokens name the one that clients dial; set it with --addr", o.listen)
	case o.recordMax < 64<<10:
		return fmt.Errorf("--record-max %v: want at least 64KB", &o.recordMax)
	case o.recordKeep < 1:
		return fmt.Errorf("--record-keep %d: want 1 or more", o.recordKeep)
	case o.maxPlayers < 1:
		return fmt.Errorf("--max-players %d: want 1 or more", o.maxPlayers)
	case o.shards < 1 || o.shards > endpoint.MaxShards():
		return fmt.Errorf("--shards %d: want 1 to %d on this machine", o.shards, endpoint.MaxShards())
	case o.report != 0 && o.report < minReport:
		return fmt.Errorf("--report %v: want 0s (never) or at least %v", o.report, minReport)
	case o.debug && o.metrics == "":
		return errors.New("--debug: it needs --metrics, such as --metrics 127.0.0.1:9464")
	case o.httpToken != "" && o.metrics == "":
		return errors.New("--http-token: it needs --metrics, such as --metrics 127.0.0.1:9464")
	case o.httpToken != "" && len(o.httpToken) < dashboard.MinToken:
		return fmt.Errorf("--http-token: want %d characters or more", dashboard.MinToken)
	case o.json && o.report == 0:
		return errors.New("--json: it needs --report, such as --report 1s")
	}
	return cmp.Or(o.fleet.check(), o.fleet.checkLabels(), o.drain.check(), o.agones.check(o.addrs), o.sealing.check(), o.capturing.check(), checkRing(o.ring))
}

// isEverywhere reports whether an address is unspecified: all addresses of the machine.
func isEverywhere(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false // Listen reports the error
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

const minReport = 100 * time.Millisecond

// runDS runs a server. It opens all inputs before it overwrites a recording.
func runDS(cmd *cobra.Command, o *dsOptions) (err error) {
	priors, err := loadPriors(o.priors)
	if err != nil {
		return err
	}
	log := o.logging.logger(cmd.ErrOrStderr())
	keys, addrs, err := o.identity(log)
	if err != nil {
		return err
	}
	network, err := o.network(log)
	if err != nil {
		return err
	}
	part, err := o.fleet.config(log)
	if err != nil {
		return err
	}
	keyLog, err := openKeyLog(cmd)
	if err != nil {
		return err
	}
	tap := &lateTap{}
	cfg := ds.Config{
		Transport: ds.Transport{KeyLog: keyLog, Route: []byte(o.route), ServerID: o.serverID, Suites: o.sealing.permitted(), Insecure: o.sealing.insecure, Shards: o.shards}, Hooks: ds.Hooks{Tap: tap.of(&o.capturing)},
		Network: network, Fleet: part,
		Key: keys[0], OtherKeys: keys[1:], Addrs: addrs, Tuning: ds.Tuning{AckHz: o.ackHz, Ring: o.ring, Priors: priors}, MaxPlayers: o.maxPlayers, Logger: log,
	}
	var world *playground.Playground
	if o.world {
		if world, err = playground.New(log); err != nil {
			return err
		}
		world.Configure(&cfg)
		defer world.Wait()
	}
	srv, err := ds.Listen(o.listen, cfg)
	if err != nil {
		return listenError(err)
	}
	var captured *capture.Writer
	defer func() { err = errors.Join(err, endCapture(captured, log)) }()
	defer func() { err = errors.Join(err, srv.Close()) }()
	rec := &recorder{log: log, max: o.recordMax, keep: o.recordKeep}
	defer func() { err = errors.Join(err, rec.close()) }()
	delays := metrics.NewHandling(o.debug)
	var load *dsreport.Reporter
	if o.report != 0 {
		load = dsreport.New(srv)
	}
	for _, path := range o.schemas {
		rpcSchema, err := schemaFile(path)
		if err != nil {
			return err
		}
		if err := ds.HandleSchema(srv, rpcSchema, o.handler(rpcSchema, delays, load, rec)); err != nil {
			return fmt.Errorf("--%s %s: %w", schemaFlag, path, err)
		}
		rec.schema = rpcSchema
		log.Info("rpc registered", "rpc", rpcSchema.RPC(), "components", rpcSchema.Components(), "schema", path)
	}
	if o.metrics != "" {
		web, err := webserver.Start(o.web(srv, delays, rec, tap, log))
		if err != nil {
			return err
		}
		defer web.Close() //nolint:errcheck // the process ends
		log.Info("metrics", "url", web.MetricsURL())
		log.Info("dashboard", "url", web.URL())
	}
	if o.record != "" {
		if err := rec.create(o.record, o.capturing.overwrite); err != nil {
			return existing(fmt.Errorf("--record: %w", err))
		}
		log.Info("recording frames", "file", o.record)
	}
	if captured, err = tap.start(&o.capturing, log); err != nil {
		return errors.Join(err, rec.discard())
	}
	defer o.reloadKeys(srv, log)()
	log.Info("listening", "addr", srv.Addr())
	reporting, cancel := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer cancel()
	var reports sync.WaitGroup
	if load != nil {
		reports.Go(func() { load.Run(reporting, o.report, cmd.OutOrStdout(), o.json) })
	}
	moved := make(chan error, 1)
	if world != nil {
		reports.Go(func() { moved <- world.Run(reporting) })
	}
	err = o.agones.run(cmd.Context(), srv, log, func(ctx context.Context) error { return o.drain.serve(ctx, srv, part != nil, log) })
	cancel()
	reports.Wait()
	if world != nil {
		err = errors.Join(err, <-moved)
	}
	if err != nil || o.json {
		return err
	}
	writeTotals(cmd.OutOrStdout(), srv.Stats())
	return nil
}

// handler returns the handler of an RPC, which processes its frames as the options require.
func (o *dsOptions) handler(
	s *schema.Schema, delays *metrics.Handling, load *dsreport.Reporter, rec *recorder,
) func(*ds.Player, ds.Frame[*schema.Frame]) {
	observe := func(uint64, time.Duration) {}
	if o.metrics != "" {
		observe = delays.Observer(s.RPC())
	}
	return func(p *ds.Player, f ds.Frame[*schema.Frame]) {
		observe(p.ID(), time.Since(f.Received))
		if load != nil {
			load.Frame(p, f)
		}
		if o.record != "" {
			rec.frame(p, f)
		}
	}
}

func (o *dsOptions) web(srv *ds.Server, delays *metrics.Handling, rec *recorder, tap *lateTap, log *slog.Logger) webserver.Config {
	c := webserver.Config{
		Addr: o.metrics, Token: o.httpToken, Log: log, Collectors: []prometheus.Collector{metrics.NewServer(srv), delays}, Source: srv,
		Dashboard: dashboard.Config{Title: srv.Addr().String(), Hint: o.hint(srv)}, Labels: o.fleet.metricLabels(),
		Ready: func() error { return ready(srv) },
	}
	if o.record != "" {
		c.Collectors = append(c.Collectors, metrics.NewFileLosses("record", rec.lost.Load))
	}
	if o.capturing.path != "" {
		c.Collectors = append(c.Collectors, metrics.NewFileLosses("capture", tap.lost))
	}
	if o.debug {
		stats := func() any { return debugserver.Stats(srv.Stats()) }
		c.Handlers = map[string]http.Handler{"/debug/": debugserver.Handler(stats)}
	}
	return c
}

// hint returns the text of the dashboard while no player is connected.
func (o *dsOptions) hint(srv *ds.Server) string {
	to := srv.Addr().String()
	if len(o.addrs) != 0 {
		to = o.addrs[0]
	}
	line := "uplink bots --players 8 --to " + to
	if len(o.keys) > 0 {
		line += " --key " + o.keys[0] + issuerSuffix
	}
	return line + " TRACE.csv.gz"
}

// ready returns an error while the server should get no new players. If the store of the fleet
// fails, it is a degraded one: otherwise all servers would be unready, and a load balancer
// would disconnect players who can continue.
func ready(srv *ds.Server) error {
	part := srv.Stats().Fleet
	switch {
	case srv.Draining():
		return errors.New("the server drains")
	case part == nil || part.Err == nil:
		return nil
	case !part.Up:
		return statuspage.Degraded(fmt.Errorf("the store of the fleet fails: %w", part.Err))
	}
	return fmt.Errorf("the fleet does not list the server: %w", part.Err)
}

func listenError(err error) error {
	if errors.Is(err, token.ErrNoKey) {
		return hintedError{err, "uplink keygen -o ds.key writes one, for --key ds.key; for tests, --insecure at both ends needs none"}
	}
	return hintedError{err, "choose another address with --listen; port 0: any free one"}
}

func writeTotals(w io.Writer, st ds.Stats) {
	for i := range st.RPCs {
		r := &st.RPCs[i]
		channel, ratio := "reliable", ""
		if !r.Reliable {
			channel, ratio = "unreliable", fmt.Sprintf("wire ratio %.2f; ", st.WireRatio(r.RPC))
		}
		n := float64(max(1, r.Frames()))
		fmt.Fprintf(w, "%s, %s: %d frames delivered, %d missed; %spayloads without the datagrams' headers %.0f bits a frame, bit-packed %.0f\n",
			r.RPC, channel, r.Frames(), r.Missed, ratio, float64(r.HeaderBits+r.PayloadBits)/n, float64(r.FullBits)/n)
	}
}
