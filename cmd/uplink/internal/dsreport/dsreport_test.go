package dsreport

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

// TestRun reports on a server whose handler is slow, to which datagrams come that make no sense.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, played := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{}), sample.Portal2()
		var r *Reporter
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			r = New(s)
			return ds.HandleSchema(s, played.Schema, func(p *ds.Player, f ds.Frame[*schema.Frame]) {
				time.Sleep(2 * time.Millisecond) // as if decoding took that long
				r.Frame(p, f)
			})
		})
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx, time.Second, &out, true)
		}()
		conn := uplinktest.Dial(t, network, client.Config{})
		stream, err := client.BindSchema(t.Context(), conn, played.Schema, client.BindConfig{})
		uplinktest.Must(t, err)
		stranger, err := network.ListenPacket("127.0.0.1:0")
		uplinktest.Must(t, err)
		for i := range 100 {
			uplinktest.Must(t, uplinktest.Sent(stream.Send(played.At(i))))
			if i == 60 {
				_, err := stranger.WriteTo([]byte{1}, srv.Addr())
				uplinktest.Must(t, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		uplinktest.Must(t, conn.Close())
		time.Sleep(100 * time.Millisecond)
		cancel()
		<-done
		uplinktest.Must(t, stranger.Close())

		var lines []Line
		for d := json.NewDecoder(&out); d.More(); {
			var l Line
			uplinktest.Must(t, d.Decode(&l))
			lines = append(lines, l)
		}
		if len(lines) != 3 {
			t.Fatalf("%d lines, want one a second and one of all: %+v", len(lines), lines)
		}
		whole, frames := lines[2], uint64(0)
		for _, l := range lines[:2] {
			if l.Whole || l.Players != 1 || l.PerSecond != float64(l.Frames) {
				t.Errorf("%+v", l)
			}
			frames += l.Frames
		}
		if !whole.Whole || whole.Players != 1 || whole.Frames != 100 || frames > 100 || frames < 98 || whole.Missed != 0 {
			t.Errorf("%d frames, then %+v", frames, whole)
		}
		if d := whole.ToHandler; d.Count != 100 || d.P50 < 2 || d.Max > 2.01 {
			t.Errorf("%+v, want 2 ms", d)
		}
		if lines[0].Drops["malformed"] != 0 || lines[1].Drops["malformed"] != 1 || len(whole.Drops) != 1 || whole.Drops["malformed"] != 1 {
			t.Errorf("drops %v, then %v, in all %v", lines[0].Drops, lines[1].Drops, whole.Drops)
		}
	})
}

func TestLine(t *testing.T) {
	l := Line{
		Seconds: 31, Players: 1000, Frames: 1_800_000, PerSecond: 60_012.4, Missed: 12, Cores: 0.41, Micros: 6.83,
		ToHandler: meter.Summary{Count: 9, P50: 0.004, P90: 0.011, P99: 0.093, P999: 0.41, Max: 3.2},
		Drops:     map[string]uint64{"late": 3, "kernel": 17},
	}
	const want = "31 s: 1000 players, 60012 frames/s, 12 missed, to handler 50 % 0.004, 90 % 0.011, 99 % 0.093, 99.9 % 0.41, max 3.2 ms, " +
		"0.410 cores, 6.8 us a frame; dropped kernel 17 late 3"
	if got := l.String(); got != want {
		t.Errorf("%q, want\n%q", got, want)
	}
	l.Whole, l.Drops = true, nil
	if got := l.String(); !strings.HasPrefix(got, "in all 31 s: ") || strings.Contains(got, "dropped") {
		t.Errorf("%q", got)
	}
}
