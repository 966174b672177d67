package rerun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	records "github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

const ms = time.Millisecond

// scenario configures a captured game.
type scenario struct {
	frames  int
	ds      ds.Config
	client  client.Config
	link    simnet.Config
	bind    client.BindConfig
	capture capture.Config
}

// play captures a game of three clients with an unreliable and a reliable RPC, and gives the first
// file.
func (c *scenario) play(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "out.uplink")
	w, err := capture.Create(path, c.capture)
	uplinktest.Must(t, err)
	up := c.link
	up.Delay, up.Seed = 40*ms, 5
	network := uplinktest.NewNetwork(t, up, simnet.Config{Delay: 40 * ms, Loss: up.Loss, Seed: 6})
	c.ds.Hooks.Tap, c.ds.OnMessage = w.Tap(), func(*ds.Player, []byte) {}
	srv := uplinktest.Serve(t, network, c.ds, func(s *ds.Server) error {
		nothing := func(*ds.Player, ds.Frame[uplinktest.Move]) {}
		return errors.Join(ds.Handle(s, "A", nothing), ds.Handle(s, "R", nothing))
	})
	c.client.Transport.BindTimeout = time.Minute
	var streams []*client.Stream[uplinktest.Move]
	for range 3 {
		conn := uplinktest.Dial(t, network, c.client)
		uplinktest.Must(t, conn.SendReliable([]byte("hello")))
		streams = append(streams, uplinktest.Bind(t, conn, "A", c.bind), uplinktest.Bind(t, conn, "R", client.BindConfig{Reliable: true}))
	}
	for n := range uint64(c.frames) {
		for i, s := range streams {
			m := uplinktest.MoveAt(uint64(i), n)
			if i%2 == 0 || n%10 == 0 {
				uplinktest.Must(t, uplinktest.Sent(s.Send(&m)))
			}
		}
		time.Sleep(time.Second / 60)
	}
	time.Sleep(time.Second)
	uplinktest.Must(t, srv.Close())
	uplinktest.Must(t, w.Close())
	return path
}

func load(t *testing.T, path string, player uint64) *Plan {
	t.Helper()
	data, err := os.ReadFile(path)
	uplinktest.Must(t, err)
	p, err := Load(bytes.NewReader(data), player, 0)
	uplinktest.Must(t, err)
	return p
}

// TestSelf plays captures of all sorts to a server of its own: all comes out the same.
func TestSelf(t *testing.T) {
	for name, c := range map[string]scenario{
		"perfect": {frames: 100},
		"loss":    {frames: 300, link: simnet.Config{Loss: 0.1, Jitter: 10 * ms, Duplicate: 0.1}},
		"late":    {frames: 300, link: simnet.Config{Loss: 0.1, Jitter: 20 * ms}, ds: ds.Config{Tuning: ds.Tuning{DeliverLate: true, Ring: 32}}},
		"repairs": {frames: 600, link: simnet.Config{Loss: 0.1, Jitter: 30 * ms}, client: client.Config{Preset: client.Balanced}},
		"rle":     {frames: 200, link: simnet.Config{Loss: 0.1}, client: client.Config{Tuning: client.Tuning{Codec: rpcdelta.RLE}}},
		"bundles": {frames: 300, link: simnet.Config{Loss: 0.1, Jitter: 20 * ms}, client: client.Config{Tick: 50 * ms}, bind: client.BindConfig{Delay: uplinktest.Wait(2, 60)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := c.play(t)
				for _, speed := range []float64{1, 20} {
					plan := load(t, path, 0)
					r, err := PlaySelf(t.Context(), plan, Options{Speed: speed})
					uplinktest.Must(t, err)
					if plan.Sessions() != 3 || r.Sessions != 3 || r.Failed != 0 || r.Different != 0 || r.Missing != 0 || r.Same < uint64(c.frames) || r.Messages < 3 {
						t.Errorf("at speed %v: %+v", speed, r)
					}
				}
				one := load(t, path, 2)
				r, err := PlaySelf(t.Context(), one, Options{Speed: 5})
				if err != nil || r.Sessions != 1 || r.Different != 0 || r.Missing != 0 || r.Same == 0 {
					t.Errorf("one player: %+v, %v", r, err)
				}
			})
		})
	}
}

// TestRotated plays each file of a row: what refers to earlier ones is left out, all else comes out
// the same.
func TestRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scenario{frames: 2000, link: simnet.Config{Loss: 0.05, Jitter: 5 * ms}, capture: capture.Config{MaxBytes: 64 << 10, Keep: 100}}
		path := c.play(t)
		for i := range 4 {
			r, err := PlaySelf(t.Context(), load(t, records.FileName(path, i), 0), Options{Speed: 10})
			uplinktest.Must(t, err)
			if r.Different != 0 || r.Missing != 0 || r.Same < 500 || (r.Skipped > 100) != (i > 0) {
				t.Errorf("file %d: %+v", i, r)
			}
		}
	})
}

// TestDifferent plays to a server that makes something else of it, since the capture says so.
func TestDifferent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scenario{frames: 50}
		plan := load(t, c.play(t), 0)
		e := plan.sessions[1].expect[0]
		e[7] = taken(1, rpcdelta.Delta, 12345)
		plan.sessions[2].expect[0] = append(plan.sessions[2].expect[0], "more")
		r, err := PlaySelf(t.Context(), plan, Options{Speed: 1})
		if err != nil || r.Different != 1 || r.Missing != 1 || !strings.HasPrefix(r.First, "player 2, RPC 0, payload 8: ") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestOtherServer plays to a server that is there: it gets what the first one got.
func TestOtherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scenario{frames: 100, link: simnet.Config{Loss: 0.05}}
		path := c.play(t)
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		frames := 0
		srv := uplinktest.Serve(t, network, ds.Config{OnMessage: func(*ds.Player, []byte) {}}, func(s *ds.Server) error {
			return errors.Join(ds.Handle(s, "A", func(*ds.Player, ds.Frame[uplinktest.Move]) { frames++ }),
				ds.Handle(s, "R", func(*ds.Player, ds.Frame[uplinktest.Move]) {}))
		})
		plan := load(t, path, 0)
		r, err := Play(t.Context(), plan, Options{To: uplinktest.Addr, Network: network, Speed: 1})
		uplinktest.Must(t, err)
		time.Sleep(time.Second)
		uplinktest.Must(t, srv.Close())
		if r.Failed != 0 || r.Datagrams < 200 || frames < 280 || frames > 300 {
			t.Errorf("%+v, %d frames", r, frames)
		}
	})
}

// TestRefused plays to servers that do not want it, and to none.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scenario{frames: 20}
		plan := load(t, c.play(t), 0)
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		if _, err := Play(t.Context(), plan, Options{To: uplinktest.Addr, Network: network, Speed: 1}); err == nil {
			t.Error("nobody is there")
		}
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return ds.Handle(s, "Other", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
		})
		r, err := Play(t.Context(), plan, Options{To: uplinktest.Addr, Network: network, Speed: 1})
		if err == nil || r.Failed != 3 || !strings.Contains(err.Error(), "bind A: the server refuses it, reason 1") {
			t.Errorf("%+v, %v", r, err)
		}
		uplinktest.Must(t, srv.Close())
	})
}

// TestLoadCut loads a capture that is cut off: what is before the cut is played.
func TestLoadCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scenario{frames: 100}
		data, err := os.ReadFile(c.play(t))
		uplinktest.Must(t, err)
		for _, n := range slices.Sorted(slices.Values([]int{0, 5, 100, len(data) / 2, len(data) - 1})) {
			plan, err := Load(bytes.NewReader(data[:n]), 0, 0)
			var at *records.FileError
			if !errors.As(err, &at) || plan == nil && n > 200 {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if n < len(data)/2 {
				continue
			}
			r, err := PlaySelf(t.Context(), plan, Options{Speed: 1})
			if err != nil || r.Different != 0 || r.Missing != 0 || r.Same < 100 {
				t.Errorf("%d bytes: %s", n, fmt.Sprint(r, err))
			}
		}
	})
}
