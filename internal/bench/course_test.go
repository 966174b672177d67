package bench

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestCourse checks that a course has the counts of a run of a codec over the same link.
func TestCourse(t *testing.T) {
	tr := short(sample.RocketLeague(), 900)
	for _, loss := range []float64{0, 0.2} {
		cfg := config()
		cfg.Link.Loss, cfg.Link.Jitter, cfg.AckHz = loss, 10*time.Millisecond, 10
		course, err := NewCourse(t.Context(), len(tr.Frames), tr.Schema.RateHz(), cfg)
		uplinktest.Must(t, err)
		if len(course) != len(tr.Frames) {
			t.Fatalf("%d passages of %d frames", len(course), len(tr.Frames))
		}
		arrived, header, ages, deltas := 0, 0, 0, 0
		for n, p := range course {
			header += p.HeaderBits
			if p.Arrived {
				arrived++
			}
			if p.Base >= 0 {
				if !course[p.Base].Arrived || p.Base >= n {
					t.Fatalf("frame %d: its baseline %d did not arrive", n, p.Base)
				}
				ages, deltas = ages+n-p.Base, deltas+1
			}
		}
		cfg.Schemes = []string{"adaptive"}
		cfg.Redundancy = -1
		c := mustRun(t, tr, cfg).Codecs[0]
		more := share(header, len(course)) - c.HeaderBits // in whole bytes, which adaptive's is not
		if c.FramesDelivered != arrived || more < 0 || more > 3 || c.BaselineAge != share(ages, deltas) {
			t.Errorf("loss %v: %d arrived, header %v, age %v; adaptive %+v", loss, arrived, share(header, len(course)), share(ages, deltas), c)
		}
	}
}

// TestCourseErrors checks that an invalid link and an invalid rate are errors.
func TestCourseErrors(t *testing.T) {
	bad := config()
	bad.Link.Loss = 2
	_, lost := NewCourse(t.Context(), 10, 60, bad)
	_, backward := NewCourse(t.Context(), 10, -1, config())
	if lost == nil || backward == nil {
		t.Errorf("%v, %v", lost, backward)
	}
}
