package interpolate_test

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

const ms = time.Millisecond

// thing is an object with every part of a pose.
type thing struct {
	pose  interpolate.Pose
	flags uint16
}

type things struct{}

func (things) Pose(o *thing) interpolate.Pose       { return o.pose }
func (things) SetPose(o *thing, p interpolate.Pose) { o.pose = p }

// still returns a thing at x that does not turn.
func still(x float64) thing {
	return thing{pose: interpolate.Pose{Position: schema.Vec3{X: x}, Orientation: schema.Quat{W: 1}}}
}

// moving returns a thing at x with a velocity.
func moving(x, v float64) thing {
	o := still(x)
	o.pose.Velocity.X = v
	return o
}

type buffer = interpolate.Buffer[thing]

func newBuffer(t testing.TB, c interpolate.Config) *buffer {
	t.Helper()
	if c.Interval == 0 {
		c.Interval = 100 * ms
	}
	b, err := interpolate.New(things{}, c)
	must(t, err)
	return b
}

// must fails a test if there is an error.
func must(t interface{ Fatal(args ...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// add adds a snapshot of one object with id 7 that arrives without delay.
func add(t testing.TB, b *buffer, at time.Duration, o thing) {
	t.Helper()
	if err := b.Add(at, at, []uint32{7}, []thing{o}); err != nil {
		t.Fatalf("at %v: %v", at, err)
	}
}

// only returns the single object shown at a server time.
func only(t testing.TB, b *buffer, at time.Duration) thing {
	t.Helper()
	var s interpolate.Sample[thing]
	if !b.At(at, &s) || len(s.IDs) != 1 || len(s.Objects) != 1 || s.IDs[0] != 7 || s.Time != at {
		t.Fatalf("at %v: %+v", at, s)
	}
	return s.Objects[0]
}
