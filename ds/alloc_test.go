package ds

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// TestReceiveAllocatesNothing has frames with byte slices arrive, in both ways
// to run handlers.
func TestReceiveAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for name, poll := range map[string]bool{"Serve": false, "Poll": true} {
		t.Run(name, func(t *testing.T) {
			var got uint64
			b := newBench(t, Config{Poll: poll}, func(_ *Player, f Frame[testCall]) {
				if f.Seq != got || f.Missed != 0 {
					t.Errorf("frame %d comes when %d is next, and misses %d", f.Seq, got, f.Missed)
				}
				got++
			})
			s := b.join(0)
			var acks []byte
			frame := func() {
				s.call()
				if s.next%6 == 0 {
					b.srv.Poll()
					acks = s.ack(acks)
				}
			}
			for range 1000 {
				frame()
			}
			if n := testing.AllocsPerRun(1000, frame); n != 0 {
				t.Errorf("%v allocations a frame", n)
			}
			b.srv.Poll()
			st := b.stats().RPCs[0]
			if got != s.next || st.Frames() != s.next || st.Delta < s.next*9/10 {
				t.Errorf("%d of %d frames handled, counted %+v", got, s.next, st)
			}
		})
	}
}

// BenchmarkReceive is the server's work on one frame, without the socket.
func BenchmarkReceive(b *testing.B) { benchmarkReceive(b, 0) }

// BenchmarkReceiveProfiled is the same with each payload measured.
func BenchmarkReceiveProfiled(b *testing.B) { benchmarkReceive(b, 1) }

func benchmarkReceive(b *testing.B, profileEvery int) {
	b.Helper()
	s := newBench(b, Config{}, func(*Player, Frame[testCall]) {}).join(0)
	s.srv.Profile(profileEvery)
	const frames = 1 << 12
	var payloads [frames][]byte
	var acks []byte
	for i := range payloads {
		payloads[i] = append([]byte(nil), s.payload()...)
		s.player.receive(payloads[i], time.Time{}, false)
		if i%6 == 5 {
			acks = s.ack(acks)
		}
	}
	bits := s.stats().RPCs[0]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%frames == 0 { // the player starts anew
			b.StopTimer()
			s.player.bindings = nil
			s.srv.bind(s.player, s.request(0))
			b.StartTimer()
		}
		s.player.receive(payloads[i%frames], time.Time{}, false)
	}
	b.ReportMetric(float64(bits.FullBits)/frames, "fullbits/frame")
	b.ReportMetric(float64(bits.PayloadBits+bits.HeaderBits)/frames, "bits/frame")
}
