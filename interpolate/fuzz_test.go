package interpolate_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
)

// FuzzBuffer adds snapshots of arbitrary times and shows the world meanwhile. Each entry is a byte
// of elapsed time, the server's time and the number of objects. Playback does not run backwards
// except after a restart, and poses remain numbers.
func FuzzBuffer(f *testing.F) {
	entry := func(later byte, server int64, objects byte) []byte {
		return append(binary.LittleEndian.AppendUint64([]byte{later}, uint64(server)), objects)
	}
	f.Add(append(entry(1, 1e9, 3), entry(50, 2e9, 4)...), true)
	f.Add(append(entry(1, math.MaxInt64, 3), entry(50, math.MinInt64, 4)...), false)
	f.Add(append(entry(1, 1<<61, 3), append(entry(9, 0, 4), append(entry(9, 1, 4), entry(9, 2, 9)...)...)...), true)
	f.Fuzz(func(t *testing.T, in []byte, adaptive bool) {
		b := newBuffer(t, interpolate.Config{Interval: 50 * ms, Method: interpolate.Hermite, Adaptive: adaptive, Extrapolate: 100 * ms, Objects: 100})
		var now, shown time.Duration
		var out interpolate.Sample[thing]
		added, restarts := uint64(0), uint64(0)
		for ; len(in) >= 10; in = in[10:] {
			now += time.Duration(in[0]) * time.Millisecond
			ids, objects := make([]uint32, in[9]), make([]thing, in[9])
			for i := range ids {
				ids[i] = uint32(i)
				objects[i] = moving(float64(in[1])-100, float64(in[2]))
			}
			err := b.Add(now, time.Duration(binary.LittleEndian.Uint64(in[1:9])), ids, objects)
			if err != nil && !errors.Is(err, interpolate.ErrInput) && !errors.Is(err, interpolate.ErrLate) && !errors.Is(err, interpolate.ErrDuplicate) {
				t.Fatal(err)
			}
			added++
			if st := b.Stats(); st.Added+st.Late+st.Duplicate+st.Bad != added {
				t.Fatalf("%d were added, counted %+v", added, st)
			}
			if !b.Sample(now, &out) {
				continue
			}
			if again := b.Stats().Restarts != restarts; out.Time < shown && !again {
				t.Fatalf("shows %v after %v", out.Time, shown)
			}
			shown, restarts = out.Time, b.Stats().Restarts
			for _, o := range out.Objects {
				if x := o.pose.Position.X + o.pose.Velocity.X + o.pose.Orientation.W; math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("shows %+v", o)
				}
			}
		}
	})
}
