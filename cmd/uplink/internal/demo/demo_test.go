package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/demopanel"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/scrape"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

func options() Options {
	return Options{Link: simlink.Config{RTT: 2 * time.Millisecond, Burst: 1, Seed: 1}, Clients: 3, Codec: rpcdelta.RLE, For: 200 * time.Millisecond, Metrics: "127.0.0.1:0"}
}

// prepare makes a demo that serves until the test ends, and has no clients yet.
func prepare(t *testing.T, o Options) (d *demo, served chan error) {
	t.Helper()
	d, err := newDemo(o)
	uplinktest.Must(t, err)
	uplinktest.Must(t, d.listen())
	served = make(chan error, 1)
	go func() {
		served <- d.srv.Serve(context.Background())
		close(served)
	}()
	t.Cleanup(func() {
		if err := errors.Join(d.srv.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return d, served
}

const allDelivered = " 100.0 % "

// shown contains a demo's output, up to the first table in which all frames were delivered.
type shown struct {
	text strings.Builder
	end  context.CancelFunc
}

func (s *shown) Write(b []byte) (int, error) {
	if strings.Contains(string(b), allDelivered) {
		s.end()
	}
	return s.text.Write(b)
}

// TestRun plays over a link that loses nothing, sealed in each way.
func TestRun(t *testing.T) {
	for suite, seal := range map[transport.Suite]int{transport.None: 0, transport.AES128CTRHMAC8: 64, transport.AES128GCM: 128} {
		t.Run(suite.String(), func(t *testing.T) {
			t.Parallel()
			o := options()
			o.Suites, o.For = []transport.Suite{suite}, 2*time.Minute
			ctx, end := context.WithCancel(t.Context())
			b := shown{end: end}
			uplinktest.Must(t, Run(ctx, &b, o))
			for _, want := range []string{
				"; preset none; suite " + suite.String() + ".\n", allDelivered, fmt.Sprintf("\n16 of datagram, %d of AEAD and 224 of UDP and IP.", seal),
				"\nDifferent from what was recorded: 0.\n",
			} {
				if !strings.Contains(b.text.String(), want) {
					t.Errorf("no %q in\n%s", want, &b.text)
				}
			}
		})
	}
}

func TestKeys(t *testing.T) {
	d, _ := prepare(t, options())
	if _, err := client.Dial(t.Context(), d.srv.Addr().String(), client.Config{}); !errors.Is(err, token.ErrNoToken) {
		t.Errorf("without a token: %v", err)
	}
}

// TestVerdict plays something else than is expected.
func TestVerdict(t *testing.T) {
	d := &demo{}
	if err := d.verdict(io.Discard); err != nil {
		t.Error(err)
	}
	d.mismatches.Add(3)
	if err := d.verdict(io.Discard); err == nil || err.Error() != "3 frames differ from what was recorded" {
		t.Error(err)
	}
	crowd := load.NewCrowd(1, 100, func(context.Context, int) (*load.Bot, error) {
		return &load.Bot{Turn: func() error { return errors.New("broken") }}, nil
	})
	uplinktest.Must(t, crowd.Join(t.Context(), 0))
	stop := crowd.Play(0)
	uplinktest.Await(t, "the player ends", func() bool { ended, _ := crowd.Ended(); return ended == 1 }, nil)
	stop()
	broken := &demo{crowds: []*load.Crowd{crowd}}
	broken.unchecked.Add(2)
	var b strings.Builder
	if err := broken.verdict(&b); err == nil || err.Error() != "broken" || !strings.Contains(b.String(), "not compared: 2.\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestMismatch checks clients that play another recording than the demo compares with.
func TestMismatch(t *testing.T) {
	o := options()
	o.For = 0
	d, served := prepare(t, o)
	uplinktest.Must(t, d.connect(t.Context()))
	for i, p := range d.players {
		other := *p.trace
		other.Frames = append(other.Frames[7:len(other.Frames):len(other.Frames)], other.Frames[:7]...)
		p.trace = &other
		if i == 2 {
			p.session = p.conn.ID() // as if the client had connected again in the middle of a call
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	played := make(chan error, 1)
	go func() { played <- d.play(ctx, io.Discard, served) }()
	uplinktest.Await(t, "frames differ, and those of a client of which nobody knows where it began are not compared", func() bool {
		return d.mismatches.Load() > 0 && d.unchecked.Load() > 0
	}, nil)
	stop()
	if err := <-played; err == nil || !strings.HasSuffix(err.Error(), " frames differ from what was recorded") {
		t.Error(err)
	}
	d.hangUp()
}

// introduced receives the introduction.
type introduced chan string

func (c introduced) Write(b []byte) (int, error) {
	select {
	case c <- string(b):
	default:
	}
	return len(b), nil
}

// playing is a demo that plays until its test is over, and then has compared every frame. url is
// the dashboard's.
func playing(t *testing.T, o Options) (d *demo, url string) {
	t.Helper()
	d, served := prepare(t, o)
	uplinktest.Must(t, d.connect(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	played, text := make(chan error, 1), make(introduced, 1)
	go func() { played <- d.play(ctx, text, served) }()
	t.Cleanup(func() {
		stop()
		if err := <-played; err != nil {
			t.Error(err)
		}
		if n := d.unchecked.Load(); n != 0 {
			t.Errorf("%d frames were not compared", n)
		}
		d.hangUp()
	})
	return d, regexp.MustCompile(`Dashboard: (\S+)`).FindStringSubmatch(<-text)[1]
}

// TestCodecs changes the codec over a bad link: all play on, and what was counted is kept.
func TestCodecs(t *testing.T) {
	o := options()
	o.Clients, o.For = 4, 0
	o.Link.Loss, o.Link.RTT, o.Link.Jitter = 0.2, 20*time.Millisecond, 3*time.Millisecond
	d, _ := playing(t, o)
	s := d.Settings()
	s.Redundancy = 3
	for _, s.Codec = range []rpcdelta.Codec{rpcdelta.Adaptive, rpcdelta.RLE, rpcdelta.Adaptive} {
		before := d.observe().total()
		uplinktest.Must(t, d.Change(s))
		uplinktest.Await(t, "all clients have the codec", func() bool { return d.Traffic().Switched == o.Clients }, nil)
		uplinktest.Await(t, "they play on", func() bool {
			now := d.observe().total()
			return now.Sent.Frames() > before.Sent.Frames()+100 && now.Delivered > before.Delivered+50
		}, nil)
		now := d.observe().total()
		if combines := s.Codec == rpcdelta.Adaptive; (now.redundancy == 3) != combines {
			t.Errorf("%v: redundancy %d", s.Codec, now.redundancy)
		}
		if now.Bytes <= before.Bytes || now.Messages <= before.Messages || now.AEADBytes <= before.AEADBytes {
			t.Errorf("%v: %+v, before %+v", s.Codec, now, before)
		}
	}
	uplinktest.Await(t, "the old connections are closed", func() bool { return d.srv.Stats().Transport.Open == o.Clients }, nil)
	// Those that are closed are still counted.
	if n := testutil.CollectAndCount(d.collector, "uplink_client_frames_total"); n == 0 {
		t.Error("no frames in the metrics")
	}
}

// TestLinkChanges: a change acts on what is sent from then on.
func TestLinkChanges(t *testing.T) {
	o := options()
	o.For = 0
	d, _ := playing(t, o)
	change := func(f func(*demopanel.Settings)) {
		t.Helper()
		s := d.Settings()
		f(&s)
		uplinktest.Must(t, d.Change(s))
		if got := d.Settings(); got != s {
			t.Errorf("%+v, want %+v", got, s)
		}
	}
	before := d.observe()
	lately := func(ok func(delivered, missed uint64) bool) bool { // of a hundred frames or more
		now := d.observe()
		o := now.since(before)
		all := o.total()
		if all.Delivered+all.Missed < 100 {
			return false
		}
		before = now
		return ok(all.Delivered, all.Missed)
	}
	change(func(s *demopanel.Settings) { s.Redundancy, s.Link.Loss = rpcdelta.RedundancyOff, 0.6 })
	uplinktest.Await(t, "frames are lost", func() bool {
		return lately(func(delivered, missed uint64) bool { return delivered < missed })
	}, nil)
	change(func(s *demopanel.Settings) { s.Link.Loss = 0 })
	uplinktest.Await(t, "none is", func() bool {
		return lately(func(_, missed uint64) bool { return missed == 0 })
	}, nil)
	change(func(s *demopanel.Settings) { s.Link.RTT = 300 * time.Millisecond })
	uplinktest.Await(t, "the round trip is longer", func() bool { return d.conns()[0].Stats().Transport.LastRTT > 200*time.Millisecond }, nil)
	good := d.Settings()
	bad := good
	bad.Link.Loss = 2
	if err := d.Change(bad); err == nil || d.Settings() != good {
		t.Errorf("a loss of 2: %v, %+v", err, d.Settings())
	}
}

// big returns the counts of a thousand clients in one second.
func big() observation {
	return observation{
		rows: []row{
			{rpc: "PortalMove", counts: counts{Sent: rpcdelta.Stats{Delta: 30_000, Keyframe: 400, FullBits: 6_400_000}, Messages: 30_400, Bytes: 600_000, AEADBytes: 30_400 * 16, Delivered: 30_000, Missed: 0}, rtt: 2 * time.Second, clients: 1},
			{rpc: "RocketMove", counts: counts{Sent: rpcdelta.Stats{Delta: 10_000, Reset: 10_000, FullBits: 4_800_000}, Messages: 20_000, Bytes: 700_000, AEADBytes: 20_000 * 8, Delivered: 1000, Missed: 9000}, rtt: 80 * time.Millisecond, clients: 1},
		},
		acks: endpoint.Acks{Messages: 10_000, Bytes: 50_000, AEADBytes: 160_000},
	}.divided()
}

func TestTable(t *testing.T) {
	var b strings.Builder
	newPrinter(&b, &Options{}).draw(big(), time.Second)
	const want = `
                     both ways   kbit/s
RPC         calls/s      ratio       up    down     full  delivery      RTT
PortalMove    30400       1.03  15987.2  2461.0  17830.4   100.0 %  2000 ms
RocketMove    20000       1.08  11680.0  1619.0  12320.0    10.0 %    80 ms
all           50400       1.05  27667.2  4080.0  30150.4    77.5 %  1040 ms
up: 10400.0 payloads, 806.4 datagram headers, 5171.2 AEAD, 11289.6 UDP and IP
ratio above 1: full frames have no acks; a preset lets calls share datagrams
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestRedraw: each table ends where the first one did, and leaves nothing else behind.
func TestRedraw(t *testing.T) {
	var b strings.Builder
	live := newPrinter(&b, &Options{Live: true})
	live.draw(big(), time.Second)
	first := b.String()
	live.draw(big(), time.Second)
	lines := strings.Count(first, "\n")
	if want := first + "\x1b[8A\x1b[J" + first; b.String() != want || lines != 8 {
		t.Errorf("%d lines, then %q", lines, strings.TrimPrefix(b.String(), first))
	}
	b.Reset()
	live.summary(big(), time.Second)
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("the summary takes the last table away: %q", b.String())
	}
}

func TestEmpty(t *testing.T) {
	var b strings.Builder
	newPrinter(&b, &Options{}).summary(observation{rows: []row{{rpc: "Move"}}}, time.Second)
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%s in\n%s", bad, b.String())
		}
	}
}

func TestSince(t *testing.T) {
	now, before := big(), big()
	before.rows[0].counts = counts{Sent: rpcdelta.Stats{Delta: 29_000}, Bytes: 500_000}
	before.acks.Bytes = 10_000
	got := now.since(before)
	if r := got.rows[0]; r.Sent.Delta != 1000 || r.Bytes != 100_000 || r.rtt != 2*time.Second || got.rows[1].Missed != 0 {
		t.Errorf("%+v", r)
	}
	if got.acks != (endpoint.Acks{Bytes: 40_000}) {
		t.Errorf("%+v", got.acks)
	}
}

// TestWireRatio compares the ratios on the console with those of the recording rule, which reads
// the metrics of the server, or of the clients, over the same time.
func TestWireRatio(t *testing.T) {
	o := options()
	o.For, o.JSON, o.Codec, o.Preset = 0, true, rpcdelta.Adaptive, client.Balanced
	d, served := prepare(t, o)
	uplinktest.Must(t, d.connect(t.Context()))
	defer d.hangUp()
	before := d.scrape(t)
	ctx, stop := context.WithCancel(t.Context())
	played := make(chan error, 1)
	var console strings.Builder
	go func() { played <- d.play(ctx, &console, served) }()
	uplinktest.Await(t, "a thousand calls arrive", func() bool { return d.observe().total().Delivered > 1000 }, nil)
	stop()
	uplinktest.Must(t, <-played)
	after := d.scrape(t)
	lines := strings.Split(strings.TrimSpace(console.String()), "\n")
	var whole Line
	uplinktest.Must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &whole))
	whole.Total.RPC = ""
	for _, r := range append(whole.RPCs, whole.Total) {
		for _, endpoint := range []string{scrape.Server, scrape.Client} {
			if got := scrape.WireRatio(before, after, endpoint, r.RPC); math.Abs(got/r.WireRatio-1) > 0.01 {
				t.Errorf("RPC %q: %.4f by %s, %.4f on the console", r.RPC, got, endpoint, r.WireRatio)
			}
		}
	}
}

// scrape returns the metrics of the server and of all clients.
func (d *demo) scrape(t *testing.T) scrape.Families {
	t.Helper()
	return scrape.Collect(t, metrics.NewServer(d.srv), metrics.NewClient(d.conns()...))
}
