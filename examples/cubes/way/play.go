package way

import (
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// play interpolates between snapshots: what the receivers of both kinds of them do.
type play struct {
	buffer *interpolate.Buffer[game.Seen]
	sample interpolate.Sample[game.Seen]
	ids    []uint32
	cubes  []game.Seen
	newest int // tick
	fresh  bool
}

func newPlay(count int, method interpolate.Method, o Options) (play, error) {
	buffer, err := interpolate.New(game.Poses{}, interpolate.Config{
		Interval: o.Interval(), Method: method, Jitter: o.Jitter, Loss: o.Loss, Adaptive: true,
		MaxDelay: max(time.Second, 8*o.Interval()), Objects: count,
	})
	p := play{buffer: buffer, ids: make([]uint32, count), cubes: make([]game.Seen, count)}
	for i := range p.ids {
		p.ids[i] = uint32(i)
	}
	return p, err
}

// take has the snapshot in cubes, which is that of a tick, shown.
func (p *play) take(at time.Duration, tick int) error {
	p.newest, p.fresh = max(p.newest, tick), true
	err := p.buffer.Add(at, game.Time(tick), p.ids, p.cubes)
	if errors.Is(err, interpolate.ErrLate) || errors.Is(err, interpolate.ErrDuplicate) {
		return nil
	}
	return err
}

func (p *play) Draw(now time.Duration, drawn []game.Seen) (time.Duration, bool) {
	if !p.buffer.Sample(now, &p.sample) {
		return 0, false
	}
	copy(drawn, p.sample.Objects)
	return p.sample.Time, true
}

// Motion tells of none: nothing is simulated.
func (p *play) Motion(int) (schema.Vec3, bool) { return schema.Vec3{}, false }

// Updated tells of all cubes: a snapshot has every one.
func (p *play) Updated(f func(cube int)) {
	if !p.fresh {
		return
	}
	p.fresh = false
	for i := range p.cubes {
		f(i)
	}
}
