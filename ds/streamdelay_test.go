package ds_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// delays are the delays of messages that contain the time when they were sent.
type delays struct {
	start time.Time
	all   []time.Duration
}

// stamp returns a message of 100 bytes.
func (d *delays) stamp() []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 92), uint64(time.Since(d.start)))
}

func (d *delays) take(b []byte) {
	d.all = append(d.all, time.Since(d.start)-time.Duration(binary.LittleEndian.Uint64(b[92:])))
}

func (d *delays) quantile(q float64) time.Duration {
	slices.Sort(d.all)
	return d.all[int(q*float64(len(d.all)-1))].Round(ms)
}

func (d *delays) String() string {
	return fmt.Sprintf("50 %% %v, 90 %% %v, 99 %% %v, all %v", d.quantile(0.5), d.quantile(0.9), d.quantile(0.99), d.quantile(1))
}

// TestStreamsBesideMessages measures the delays of messages of 100 bytes, reliable and unreliable
// ones at 60 Hz, while streams of 1 MB are sent in the same direction, and without them.
// docs/guide.md has the results.
func TestStreamsBesideMessages(t *testing.T) {
	measures(t)
	type result struct {
		reliable, unreliable delays
		lost                 int           // unreliable messages
		stream               time.Duration // for 1 MB
	}
	measure := func(t *testing.T, link simnet.Config, up, streaming bool) (res result) {
		network := linkedBy(t, 100*ms, link)
		res.reliable.start, res.unreliable.start = time.Now(), time.Now()
		var player *ds.Player
		read := func(r session.StreamReader) { _, _ = io.Copy(io.Discard, r) }
		serve(t, network, ds.Config{
			Joined:    func(p *ds.Player) { player = p },
			OnMessage: func(_ *ds.Player, b []byte) { res.reliable.take(b) },
			Hooks:     ds.Hooks{OnUnreliable: func(_ *ds.Player, b []byte) { res.unreliable.take(b) }, OnStream: func(_ *ds.Player, r session.StreamReader) { read(r) }},
		})
		conn := uplinktest.Dial(t, network, client.Config{OnMessage: res.reliable.take, OnUnreliable: res.unreliable.take, OnStream: read})
		settle(2 * time.Second)
		open, reliable, unreliable := conn.OpenStream, conn.SendReliable, conn.SendUnreliable
		if !up {
			open, reliable, unreliable = player.OpenStream, player.SendReliable, player.SendUnreliable
		}
		end, streams, sent := make(chan struct{}), make(chan time.Duration), 0
		go func() {
			const size = 1 << 20
			start, done := time.Now(), 0
			for ; streaming; done++ {
				w, err := open(t.Context(), "measured")
				uplinktest.Must(t, err)
				_, err = w.Write(make([]byte, size))
				uplinktest.Must(t, err)
				uplinktest.Must(t, w.Close())
				select {
				case <-end:
					streaming = false
				default:
				}
			}
			streams <- time.Since(start) / time.Duration(max(done, 1))
		}()
		for stop := time.Now().Add(20 * time.Second); time.Now().Before(stop); time.Sleep(time.Second / 60) {
			uplinktest.Must(t, reliable(res.reliable.stamp()))
			uplinktest.Must(t, unreliable(res.unreliable.stamp()))
			sent++
		}
		close(end)
		res.stream = <-streams
		settle(2 * time.Second)
		res.lost = sent - len(res.unreliable.all)
		if len(res.reliable.all) != sent {
			t.Errorf("%d of %d reliable messages arrived", len(res.reliable.all), sent)
		}
		return res
	}
	for _, link := range []simnet.Config{{Loss: 0.05, Seed: 3}, {Loss: 0.05, Jitter: 20 * ms, Seed: 3}, {Rate: 125_000, Seed: 3}} {
		for _, up := range []bool{true, false} {
			bubble(t, fmt.Sprintf("loss=%v/bytes_per_second=%d/up=%t", link.Loss, link.Rate, up), func(t *testing.T) {
				without, with := measure(t, link, up, false), measure(t, link, up, true)
				t.Logf("reliable without streams: %v", &without.reliable)
				t.Logf("reliable beside streams:  %v", &with.reliable)
				t.Logf("unreliable without streams: %v, %d lost", &without.unreliable, without.lost)
				t.Logf("unreliable beside streams:  %v, %d lost", &with.unreliable, with.lost)
				t.Logf("1 MiB took %v", with.stream.Round(10*ms))
				for _, d := range [][2]*delays{{&without.reliable, &with.reliable}, {&without.unreliable, &with.unreliable}} {
					if more := d[1].quantile(0.9) - d[0].quantile(0.9); more > 4*20*ms { // four times the mean that the bulk channel aims at
						t.Errorf("streams delay messages by %v at the 90 %% quantile", more)
					}
				}
				dropped := link.Loss * 20 * 60 // by the link, on average
				if float64(with.lost) > dropped+5*math.Sqrt(dropped)+20 || with.stream > 20*time.Second {
					t.Errorf("%d messages were lost, without streams %d; 1 MiB took %v", with.lost, without.lost, with.stream)
				}
			})
		}
	}
}
