package client_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// bottleneck is a client that replays a recording over a link, in virtual time.
type bottleneck struct {
	recording  *trace.Trace
	preset     client.Preset
	redundancy int
	upload     bool // over the same link, after the first seconds
	up         simnet.Config
}

const (
	bottleneckDelay = 30 * ms
	bottleneckQueue = 250 * ms // the one of simnet
	alone           = 5 * time.Second
	together        = 40 * time.Second
	sampling        = 100 * ms
)

// passage is what arrived, from the start of the upload on.
type passage struct {
	calls, upload     []uint64 // bits until each sample
	delivered, inTime float64  // share of the frames, from the start of the connection on
	limited           bool     // the client found the path congested
}

// newBottleneck returns a client on a link with this bit rate. The seed also selects the part of
// the recording.
func newBottleneck(t *testing.T, recording string, preset client.Preset, bitsPerSecond int, seed uint64) *bottleneck {
	t.Helper()
	r, err := trace.Load("../testdata/traces/"+recording+".csv.gz", nil)
	uplinktest.Must(t, err)
	up := simnet.Config{Delay: bottleneckDelay, Jitter: ms, Loss: 0.01, Rate: bitsPerSecond / 8, Seed: seed}
	return &bottleneck{recording: r, preset: preset, up: up}
}

// run makes all calls. A frame is in time if it arrives before the deadline of the preset, not
// counting the longest time in the queue.
func (b *bottleneck) run(t *testing.T) (p passage) {
	t.Helper()
	rpc := b.recording.Schema
	synctest.Test(t, func(t *testing.T) {
		n := uplinktest.NewNetwork(t, b.up, simnet.Config{Delay: bottleneckDelay, Seed: ^b.up.Seed})
		n.ShareBottleneck()
		var mu sync.Mutex
		var leaves []time.Time // of the frames
		late := b.preset.DeadlineAt(rpc.RateHz()) + bottleneckDelay + bottleneckQueue
		delivered, inTime := 0, 0
		cfg := ds.Config{Transport: ds.Transport{Suites: []transport.Suite{transport.AES128GCM, transport.AES128CTRHMAC8}}}
		srv := uplinktest.Serve(t, n, cfg, func(s *ds.Server) error {
			return ds.HandleSchema(s, rpc, func(_ *ds.Player, f ds.Frame[*schema.Frame]) {
				mu.Lock()
				defer mu.Unlock()
				delivered++
				if f.Received.Sub(leaves[f.Seq]) <= late {
					inTime++
				}
			})
		})
		conn := uplinktest.Dial(t, n, client.Config{Preset: b.preset, Tuning: client.Tuning{Redundancy: b.redundancy}})
		s, err := client.BindSchema(t.Context(), conn, rpc, client.BindConfig{})
		uplinktest.Must(t, err)
		interval := time.Duration(float64(time.Second) / rpc.RateHz())
		call := func(d time.Duration, sample func()) {
			due := time.Now()
			until := due.Add(d)
			for next := due.Add(interval); next.Before(until); next = next.Add(interval) {
				mu.Lock()
				leaves = append(leaves, time.Now())
				mu.Unlock()
				uplinktest.Must(t, uplinktest.Sent(s.Send(b.recording.At(len(leaves)+500*int(b.up.Seed)))))
				time.Sleep(time.Until(next))
				for ; !time.Now().Before(due); due = due.Add(sampling) {
					sample()
				}
			}
		}
		call(alone, func() {})
		var flow tcpFlow
		if b.upload {
			flow.start(t, n.Network)
		}
		call(together, func() {
			st := srv.Stats().Transport
			p.calls = append(p.calls, 8*(st.BytesReceived+endpoint.IPSize*st.DatagramsReceived))
			p.upload = append(p.upload, 8*flow.received.Load())
			p.limited = p.limited || conn.Stats().Budget.Path != 0
		})
		settle(time.Second)
		p.delivered, p.inTime = float64(delivered)/float64(len(leaves)), float64(inTime)/float64(len(leaves))
	})
	return p
}

// lowest returns the lowest bit rate over 10 s.
func lowest(bits []uint64) float64 {
	const span = 10 * time.Second
	low := bits[len(bits)-1]
	for i := int(span / sampling); i < len(bits); i++ {
		low = min(low, bits[i]-bits[i-int(span/sampling)])
	}
	return float64(low) / span.Seconds()
}

var (
	recordings = []string{"cubes_player_60hz", "portal2_coop_60hz", "rocketleague_solo_30hz", "portal1_escape02_67hz", "portal1_netclient_67hz"}
	allPresets = []client.Preset{client.LowLatency, client.Balanced, client.LowBandwidth}
)

// TestSharedBottleneck checks that a client and a TCP upload that share a link of 64 kbit/s each
// get at least a quarter of it over any 10 s. A preset that needs less without the upload gets at
// least three quarters of what it needs. With redundancy, at least as many frames are delivered as
// without, also before their deadline.
func TestSharedBottleneck(t *testing.T) {
	const rate, quarter = 64_000, 16_000
	for i, recording := range recordings {
		for j, preset := range allPresets {
			if testing.Short() && i != j {
				continue
			}
			t.Run(recording+"/"+preset.Name, func(t *testing.T) {
				t.Parallel()
				b := newBottleneck(t, recording, preset, rate, uint64(1+i+len(recordings)*j))
				without := b.run(t)
				b.upload = true
				with := b.run(t)
				b.redundancy = rpcdelta.RedundancyOff
				once := b.run(t)
				got := fmt.Sprintf("calls %.0f bit/s of %.0f without upload, upload %.0f; delivered %.4f, in time %.4f; without redundancy %.4f, %.4f",
					lowest(with.calls), lowest(without.calls), lowest(with.upload), with.delivered, with.inTime, once.delivered, once.inTime)
				t.Log(got)
				if lowest(with.upload) < quarter || lowest(with.calls) < min(quarter, 0.75*lowest(without.calls)) {
					t.Errorf("less than a quarter of the link: %s", got)
				}
				if with.delivered < once.delivered || with.inTime < once.inTime {
					t.Errorf("redundancy lost frames: %s", got)
				}
				if without.limited {
					t.Error("a link without congestion was found congested")
				}
			})
		}
	}
}

// TestNarrowLink checks that a client reduces its rate on a link that is narrower than its calls
// need, so that the link is usable.
func TestNarrowLink(t *testing.T) {
	for i, rate := range []int{12_000, 16_000, 24_000} {
		b := newBottleneck(t, "portal1_escape02_67hz", client.LowLatency, rate, uint64(i+1))
		if p := b.run(t); p.delivered < 0.9 || !p.limited {
			t.Errorf("%d bit/s: delivered %.4f, limited: %v", rate, p.delivered, p.limited)
		}
	}
}

// TestRadioLoss checks that loss without a queue changes nothing, and that frames are delivered.
func TestRadioLoss(t *testing.T) {
	for i, loss := range []float64{0.05, 0.1, 0.2} {
		b := newBottleneck(t, recordings[i], allPresets[i], 0, uint64(i+1))
		b.up.Loss, b.up.Jitter = loss, 10*ms
		if p := b.run(t); p.delivered < 0.99 || p.limited {
			t.Errorf("loss of %v: delivered %.4f, limited: %v", loss, p.delivered, p.limited)
		}
	}
}

// TestCongestionEnds checks that the limits disappear after an upload.
func TestCongestionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 0, 1)
		n.ShareBottleneck()
		link := newLink(0)
		link.Rate = 64_000 / 8
		uplinktest.Must(t, n.Set(link, newLink(0)))
		journal := uplinktest.NewJournal(t, 1)
		uplinktest.Serve(t, n, ds.Config{}, func(s *ds.Server) error { return ds.Handle(s, "Move", journal.Handle) })
		m := &match{t: t, network: n, journal: journal}
		m.dial(client.Config{Preset: client.LowLatency})
		m.call(alone)
		var flow tcpFlow
		flow.start(t, n.Network)
		m.call(20 * time.Second)
		if got := m.conn.Stats().Budget; got.Path == 0 {
			t.Fatalf("an upload has no effect: %+v", got)
		}
		flow.stop()
		m.call(90 * time.Second)
		if got := m.conn.Stats().Budget; got.Path != 0 || got.FramesPerPayload != 1 || got.Redundancy != rpcdelta.MaxRedundancy {
			t.Errorf("after the upload: %+v", got)
		}
	})
}
