package areas

import (
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// BenchmarkMessages measures a tick of 10,000 objects, of which 10 % move, in 20 by 20 cells, to
// 1,000 clients that see 9 cells each: all coding, and all messages.
func BenchmarkMessages(b *testing.B) {
	const side, size, objects, clients = 20, 1 << 12, 10_000, 1000
	s := cubeSchema(b)
	rng := rand.New(rand.NewPCG(1, 1))
	w := NewWorld()
	typ := w.AddType(s)
	grid, err := area.NewGrid(1, 0, 0, size, side, side)
	if err != nil {
		b.Fatal(err)
	}
	rows := make([][]int32, objects)
	speeds := make([][2]int32, objects)
	for i := range rows {
		rows[i] = make([]int32, s.Components())
		rows[i][3] = 0
		rows[i][4], rows[i][5] = rng.Int32N(side*size), rng.Int32N(side*size)
	}
	in := make([]area.ID, 1)
	step := func() {
		w.Begin()
		for i, r := range rows {
			if i%10 == 0 {
				if rng.IntN(50) == 0 {
					speeds[i] = [2]int32{rng.Int32N(61) - 30, rng.Int32N(61) - 30}
				}
				r[4], r[5] = min(max(r[4]+speeds[i][0], 0), side*size-1), min(max(r[5]+speeds[i][1], 0), side*size-1)
			}
			in[0] = grid.At(float64(r[4]), float64(r[5]))
			if err := w.Put(typ, snapshot.Object{ID: uint16(i)}, r, in...); err != nil {
				b.Fatal(err)
			}
		}
		w.Commit()
	}
	views := make([]View, clients)
	builder := Builder{}
	var buf []byte
	n, bytes, encodings, messages := uint64(0), 0, 0, 0
	send := func() {
		for i := range views {
			v := &views[i]
			if n%512 == uint64(i%512) {
				v.See(grid.Near(nil, float64(rng.Int32N(side*size)), float64(rng.Int32N(side*size)), size*0.9))
			}
			delay := uint64(2 + i%11)
			if n > delay {
				at := n - delay - 1
				if _, err := v.Ack(snapshot.Ack{Newest: uint16(at), Window: 1<<min(at, 63) - 1}); err != nil {
					b.Fatal(err)
				}
			}
			base := v.Receipts.Baseline(n)
			if d := base.Distance; d > 0 {
				base.Distance = min(d+d%2, 12)
				if full, _ := v.Receipts.Baselines(n, 1); full>>base.Distance&1 == 0 {
					base.Distance = d
				}
			}
			buf = builder.Append(buf[:0], w, v, base, Limits{Enter: 600, Hold: 12})
			bytes += len(buf)
			messages++
		}
		for _, g := range w.groups {
			if g.encoded == n {
				encodings += g.count
			}
		}
		n++
	}
	for range 100 {
		step()
		send()
	}
	bytes, messages, encodings = 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		step()
		b.StartTimer()
		send()
	}
	b.ReportMetric(float64(bytes)/float64(messages), "B/message")
	b.ReportMetric(float64(encodings)/float64(b.N), "encodings/op")
}
