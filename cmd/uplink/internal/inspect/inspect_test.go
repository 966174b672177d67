package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	records "github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/ignore"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

const ms = time.Millisecond

// scenario configures a captured game.
type scenario struct {
	frames, clients int
	ds              ds.Config
	client          client.Config
	link            simnet.Config
	bind            client.BindConfig
	files           capture.Config
	reliable        bool // a reliable RPC beside the other two
}

// thin is a step through all there is of something: with -short most of it is left out.
func thin(step int) int {
	if testing.Short() {
		return step
	}
	return 1
}

// play captures a game in virtual time, and returns the path of the first file and the server's
// counts.
func (c *scenario) play(t *testing.T) (path string, st ds.Stats) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "out.uplink")
	synctest.Test(t, func(t *testing.T) { st = c.capture(t, path) })
	return path, st
}

// data returns the first file of a game.
func (c *scenario) data(t *testing.T) []byte {
	t.Helper()
	path, _ := c.play(t)
	data, err := os.ReadFile(path)
	uplinktest.Must(t, err)
	return data
}

func (c *scenario) capture(t *testing.T, path string) ds.Stats {
	t.Helper()
	w, err := capture.Create(path, c.files)
	uplinktest.Must(t, err)
	up := c.link
	up.Delay, up.Seed = 40*ms, 5
	network := uplinktest.NewNetwork(t, up, simnet.Config{Delay: 40 * ms, Loss: up.Loss, Seed: 6})
	c.ds.Hooks.Tap, c.ds.OnMessage = w.Tap(), func(p *ds.Player, b []byte) { uplinktest.Must(t, p.SendReliable(b)) }
	rpcs := []string{"A", "B"}
	if c.reliable {
		rpcs = append(rpcs, "R")
	}
	srv := uplinktest.Serve(t, network, c.ds, func(s *ds.Server) (err error) {
		for _, rpc := range rpcs {
			err = errors.Join(err, ds.Handle(s, rpc, func(*ds.Player, ds.Frame[uplinktest.Move]) {}))
		}
		return err
	})
	c.client.Transport.BindTimeout = time.Minute
	var streams []*client.Stream[uplinktest.Move]
	for range c.clients {
		conn := uplinktest.Dial(t, network, c.client)
		uplinktest.Must(t, conn.SendReliable([]byte("hello")))
		for _, rpc := range rpcs {
			bind := c.bind
			bind.Reliable = rpc == "R"
			streams = append(streams, uplinktest.Bind(t, conn, rpc, bind))
		}
	}
	for n := range uint64(c.frames) {
		for i, s := range streams {
			m := uplinktest.MoveAt(uint64(i), n)
			uplinktest.Must(t, uplinktest.Sent(s.Send(&m)))
		}
		time.Sleep(time.Second / 60)
	}
	time.Sleep(time.Second)
	uplinktest.Must(t, srv.Close())
	uplinktest.Must(t, w.Close())
	if lost := w.Stats().Lost; lost != 0 {
		t.Fatalf("%d records were lost", lost)
	}
	return srv.Stats()
}

func open(t *testing.T, path string, o Options) (*Summary, *Explained, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	uplinktest.Must(t, err)
	return Run(bytes.NewReader(data), o)
}

// TestAgain captures games of all sorts: all is decoded again to the same, and all counts are the
// server's.
func TestAgain(t *testing.T) {
	for name, c := range map[string]scenario{
		"perfect":  {frames: 200, clients: 2},
		"loss":     {frames: 400, clients: 3, link: simnet.Config{Loss: 0.1, Jitter: 10 * ms, Duplicate: 0.05}},
		"late":     {frames: 400, clients: 2, link: simnet.Config{Loss: 0.05, Jitter: 20 * ms}, ds: ds.Config{Tuning: ds.Tuning{DeliverLate: true}}},
		"repairs":  {frames: 600, clients: 2, link: simnet.Config{Loss: 0.1, Jitter: 30 * ms}, client: client.Config{Preset: client.Balanced}},
		"rle":      {frames: 300, clients: 2, link: simnet.Config{Loss: 0.1, Jitter: 5 * ms}, client: client.Config{Tuning: client.Tuning{Codec: rpcdelta.RLE}}},
		"bundles":  {frames: 400, clients: 2, link: simnet.Config{Loss: 0.1, Jitter: 20 * ms}, client: client.Config{Tick: 50 * ms}, bind: client.BindConfig{Delay: uplinktest.Wait(2, 60)}},
		"reliable": {frames: 100, clients: 1, link: simnet.Config{Loss: 0.05}, reliable: true},
		"outage":   {frames: 300, clients: 2, link: simnet.Config{Loss: 0.3, Burst: 30}, ds: ds.Config{Tuning: ds.Tuning{Ring: 8}}},
		"limited":  {frames: 600, clients: 1, bind: client.BindConfig{RateHz: 10}},
		"priors":   {frames: 200, clients: 1, client: client.Config{Tuning: client.Tuning{Prior: trained(t)}}, ds: ds.Config{Tuning: ds.Tuning{Priors: []*prior.Prior{trained(t)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			path, st := c.play(t)
			rows := 0
			sum, _, err := open(t, path, Options{Each: func(Row) { rows++ }})
			uplinktest.Must(t, err)
			if !sum.Whole || sum.Continues || sum.Lost != 0 || len(sum.Sessions) != c.clients || len(sum.Problems) != 0 {
				t.Errorf("%+v", sum)
			}
			checkCounts(t, sum, &st, rows)
		})
	}
}

// checkCounts holds a summary of a whole capture against what the server counted.
func checkCounts(t *testing.T, sum *Summary, st *ds.Stats, rows int) {
	t.Helper()
	if ch := sum.Check; ch.Differ != 0 || ch.Before != 0 || ch.AfterLoss != 0 || ch.Broken != 0 || ch.Same == 0 {
		t.Errorf("%+v", ch)
	}
	byRPC := map[string]*RPC{}
	for _, r := range sum.RPCs {
		byRPC[fmt.Sprint(r.Name, r.Reliable)] = r
	}
	found, frames, dropped := 0, uint64(0), uint64(0)
	for _, n := range sum.Drops {
		dropped += n
	}
	for i := range st.RPCs {
		w := &st.RPCs[i]
		r := byRPC[fmt.Sprint(w.RPC, w.Reliable)]
		if w.Messages == 0 {
			continue
		}
		if r == nil {
			t.Fatalf("%s is missing", w.RPC)
		}
		found++
		r.Stats.Redundant += w.Recovered // which a capture does not tell from frames sent once
		frames += r.Stats.Frames()
		withheld := uint64(0)
		for d, n := range w.Drops {
			reason := ds.Drop(d).String()
			if r.Drops[reason]+r.Withheld[reason] != n {
				t.Errorf("%s: the server dropped %d as %s; %v, %v", r.Name, n, reason, r.Drops, r.Withheld)
			}
			dropped += r.Drops[reason]
			withheld += r.Withheld[reason]
		}
		if withheld == 0 && !reflect.DeepEqual(r.Stats.Stats, w.Stats) || r.Stats.Frames() != w.Frames()+withheld || r.Payloads != w.Messages || r.Bytes != w.Bytes {
			t.Errorf("%s: %+v, want %+v", r.Name, r, w)
		}
	}
	if found != len(sum.RPCs) || uint64(rows) != frames+dropped {
		t.Errorf("%d rows of %d frames and %d dropped payloads; %d of %d RPCs", rows, frames, dropped, found, len(sum.RPCs))
	}
	for _, s := range sum.Sessions {
		if !s.Closed || s.Before || s.Addr == "" || s.Received == 0 || s.Sent == 0 || s.ReceivedMessages == 0 || s.SentMessages == 0 || s.Suite != "aes128gcm" {
			t.Errorf("%+v", s)
		}
	}
}

// TestRotated captures to a row of small files: each says what it cannot decode, and decodes all
// else, to its end.
func TestRotated(t *testing.T) {
	c := scenario{frames: 3000 / thin(3), clients: 4, link: simnet.Config{Loss: 0.05, Jitter: 5 * ms}, files: capture.Config{MaxBytes: 64 << 10, Keep: 100}}
	path, st := c.play(t)
	var frames, dropped uint64
	for i := 0; ; i++ {
		if _, err := os.Stat(records.FileName(path, i)); err != nil {
			if i < 4 {
				t.Fatalf("only %d files", i)
			}
			break
		}
		sum, _, err := open(t, records.FileName(path, i), Options{})
		uplinktest.Must(t, err)
		for _, r := range sum.RPCs {
			frames += r.Stats.Frames() + r.Undecoded
			for _, n := range r.Drops {
				dropped += n
			}
		}
		ch := sum.Check
		if ch.Differ != 0 || ch.AfterLoss != 0 || (ch.Before != 0) != (i > 0) || sum.Continues && ch.Before > ch.Same || sum.Index != i || len(sum.Sessions) != c.clients {
			t.Errorf("file %d: %+v", i, ch)
		}
	}
	want := uint64(0)
	for _, r := range st.RPCs {
		want += r.Frames()
	}
	if frames != want {
		t.Errorf("%d frames in all files, %d came", frames, want)
	}
}

// TestLost loses records in the midst: what cannot be decoded is said, and the rest is the same.
func TestLost(t *testing.T) {
	c := scenario{frames: 900, clients: 1, link: simnet.Config{Loss: 0.2, Burst: 20}}
	data := c.data(t)
	rng := rand.New(rand.NewPCG(1, 2))
	before, after := uint64(0), uint64(0)
	for range 20 / thin(4) {
		lossy := lose(t, data, rng)
		sum, _, err := Run(bytes.NewReader(lossy), Options{})
		uplinktest.Must(t, err)
		if sum.Check.Differ != 0 || sum.Lost == 0 {
			t.Fatalf("%+v", sum.Check)
		}
		before += sum.Check.AfterLoss
		after += sum.Check.Same
	}
	if before == 0 || after == 0 {
		t.Errorf("%d could not be decoded, %d could", before, after)
	}
}

// TestCut cuts a capture at each byte of its beginning and in the midst: what is before the cut is
// shown, with its place.
func TestCut(t *testing.T) {
	c := scenario{frames: 30, clients: 1}
	data := c.data(t)
	last := 0
	for n := 1; n < len(data); n += thin(17) {
		sum, _, err := Run(bytes.NewReader(data[:n]), Options{})
		var at *records.FileError
		if !errors.As(err, &at) || at.Offset > int64(n) || !errors.Is(err, records.ErrCut) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if sum == nil {
			if last != 0 {
				t.Fatalf("%d bytes: nothing is shown", n)
			}
			continue
		}
		if sum.Records < last || sum.Check.Differ != 0 || sum.Whole || sum.Bytes != at.Offset {
			t.Fatalf("%d bytes: %+v", n, sum)
		}
		last = sum.Records
	}
	if last < 60 {
		t.Errorf("%d records", last)
	}
}

// TestDifferent alters the decoded values in a capture: the difference is reported.
func TestDifferent(t *testing.T) {
	c := scenario{frames: 50, clients: 1}
	data := c.data(t)
	for name, change := range map[string]func(*record.Decoded){
		"hash":   func(d *record.Decoded) { d.Hash++ },
		"frames": func(d *record.Decoded) { d.Frames++ },
		"seq":    func(d *record.Decoded) { d.Seq++ },
		"kind":   func(d *record.Decoded) { d.Kind = rpcdelta.Keyframe },
	} {
		n := 0
		altered := rewrite(t, data, func(b record.Body) record.Body {
			if d, ok := b.(*record.Decoded); ok {
				if n++; n == 20 {
					change(d)
				}
			}
			return b
		})
		sum, _, err := Run(bytes.NewReader(altered), Options{})
		uplinktest.Must(t, err)
		if sum.Check.Differ != 1 || sum.Check.First == "" || sum.Check.FirstRecord == 0 {
			t.Errorf("%s: %+v", name, sum.Check)
		}
		var b strings.Builder
		uplinktest.Must(t, sum.Write(&b))
		if !strings.Contains(b.String(), "1 did not.\nThe first, at record ") {
			t.Errorf("%s", b.String())
		}
	}
}

// TestFilters counts and lists only what is asked for.
func TestFilters(t *testing.T) {
	c := scenario{frames: 100, clients: 2}
	path, _ := c.play(t)
	for _, o := range []Options{{Player: 2}, {RPC: "B"}, {From: 500 * ms, To: 900 * ms}, {Player: 1, RPC: "A", From: 600 * ms}} {
		rows, wrong := 0, 0
		o.Each = func(r Row) {
			rows++
			if o.Player != 0 && r.Player != o.Player || o.RPC != "" && r.RPC != o.RPC || r.Seconds < o.From.Seconds() || o.To != 0 && r.Seconds > o.To.Seconds() || r.Check != same {
				wrong++
			}
		}
		sum, _, err := open(t, path, o)
		uplinktest.Must(t, err)
		frames := uint64(0)
		for _, r := range sum.RPCs {
			frames += r.Stats.Frames()
		}
		if rows == 0 || rows >= 400 || wrong != 0 || frames != uint64(rows) || o.Player != 0 && len(sum.Sessions) != 1 {
			t.Errorf("%+v: %d rows, %d of them wrong, %d frames", o, rows, wrong, frames)
		}
	}
}

// TestHostile captures a client that sends anything: what the server made of it comes out again.
func TestHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "out.uplink")
		w, err := capture.Create(path, capture.Config{})
		uplinktest.Must(t, err)
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		srv := uplinktest.Serve(t, network, ds.Config{Hooks: ds.Hooks{Tap: w.Tap()}, Tuning: ds.Tuning{DeliverLate: true}, Limits: ds.Limits{RateSlack: 4}}, func(s *ds.Server) error {
			return ds.Handle(s, "A", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
		})
		typ, err := schema.Compile[uplinktest.Move]("A", 0)
		uplinktest.Must(t, err)
		conn, err := endpoint.Dial(t.Context(), uplinktest.Addr, endpoint.Config{Network: network}, ignore.Handler{})
		uplinktest.Must(t, err)
		request := message.BindRequest{RPC: 0, Name: "A", Fingerprint: typ.Schema().Fingerprint(), RateHz: 60, Ring: 64, Codec: "adaptive", Frames: 1, Prior: prior.Generic().Hash(), PerTick: typ.Schema().PerTick()}
		b, err := request.Append(nil)
		uplinktest.Must(t, err)
		uplinktest.Must(t, conn.Send(b))
		enc, err := rpcdelta.NewEncoder(typ.Schema(), rpcdelta.EncoderConfig{})
		uplinktest.Must(t, err)
		rng, frame := rand.New(rand.NewPCG(1, 2)), typ.Schema().NewFrame()
		for n := range uint64(2000) {
			m := uplinktest.MoveAt(1, n)
			uplinktest.Must(t, typ.Quantize(frame, &m))
			b, _, err = enc.AppendFrame(b[:0], frame)
			uplinktest.Must(t, err)
			switch rng.IntN(4) {
			case 0:
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			case 1:
				b = append([]byte{byte(0xe0 + rng.IntN(16)), byte(rng.IntN(20))}, b...)
			case 2:
				b = b[:1+rng.IntN(len(b))]
			}
			uplinktest.Must(t, conn.Send(b))
			time.Sleep(8 * ms)
		}
		time.Sleep(time.Second)
		uplinktest.Must(t, conn.Close())
		uplinktest.Must(t, srv.Close())
		uplinktest.Must(t, w.Close())
		sum, _, err := open(t, path, Options{})
		uplinktest.Must(t, err)
		drops := uint64(0)
		for _, n := range sum.RPCs[0].Drops {
			drops += n
		}
		if sum.Check.Differ != 0 || sum.Check.AfterLoss != 0 || sum.RPCs[0].Stats.Frames() < 300 || drops < 100 || sum.Drops["malformed"] < 50 {
			t.Errorf("%+v, %v, %v", sum.Check, sum.Drops, sum.RPCs[0])
		}
	})
}
