package interpolate_test

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
)

// BenchmarkSample shows a world of 901 objects of which a hundred move, 60 times per second, and
// adds a snapshot each time.
func BenchmarkSample(b *testing.B) {
	buf := newBuffer(b, interpolate.Config{Interval: time.Second / 60, Method: interpolate.Hermite, Adaptive: true})
	ids, objects := make([]uint32, 901), make([]thing, 901)
	for i := range ids {
		ids[i], objects[i] = uint32(i), still(float64(i))
	}
	var s interpolate.Sample[thing]
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Second / 60
		for i := range 100 {
			objects[i] = moving(now.Seconds(), 1)
			objects[i].pose.Orientation.X = now.Seconds()
		}
		must(b, buf.Add(now, now, ids, objects))
		buf.Sample(now, &s)
	}
}
