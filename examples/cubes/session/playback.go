package session

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// playback interpolates between received snapshots, for the receivers of full and of compressed
// ones.
type playback struct {
	buffer *interpolate.Buffer[world.Visual]
	sample interpolate.Sample[world.Visual]
	ids    []uint32
	cubes  []world.Visual
	newest int // tick
	fresh  bool
}

func newPlayback(count int, method interpolate.Method, o Options) (playback, error) {
	buffer, err := interpolate.New(world.PoseAdapter{}, interpolate.Config{
		Interval: o.Interval(), Method: method, Jitter: o.Jitter, Loss: o.Loss, Adaptive: true,
		MaxDelay: max(time.Second, 8*o.Interval()), Objects: count,
	})
	p := playback{buffer: buffer, ids: make([]uint32, count), cubes: make([]world.Visual, count)}
	for i := range p.ids {
		p.ids[i] = uint32(i)
	}
	return p, err
}

// add adds the snapshot in cubes, which is the one of tick, to the buffer.
func (p *playback) add(at time.Duration, tick int) error {
	p.newest, p.fresh = max(p.newest, tick), true
	err := p.buffer.Add(at, world.TickTime(tick), p.ids, p.cubes)
	if errors.Is(err, interpolate.ErrLate) || errors.Is(err, interpolate.ErrDuplicate) {
		return nil
	}
	return err
}

func (p *playback) Draw(now time.Duration, drawn []world.Visual) (time.Duration, bool) {
	if !p.buffer.Sample(now, &p.sample) {
		return 0, false
	}
	copy(drawn, p.sample.Objects)
	return p.sample.Time, true
}

// Motion returns false: nothing is simulated.
func (p *playback) Motion(int) (schema.Vec3, bool) { return schema.Vec3{}, false }

// Updated reports all cubes after a snapshot, which contains every one.
func (p *playback) Updated(f func(cube int)) {
	if !p.fresh {
		return
	}
	p.fresh = false
	for i := range p.cubes {
		f(i)
	}
}

// tickSize is the size of the tick at the start of a snapshot message, in bytes.
const tickSize = 2

var errShort = errors.New("message is too short")

func appendTick(dst []byte, tick int) []byte {
	return binary.LittleEndian.AppendUint16(dst, uint16(tick))
}

// parseTick parses the low 16 bits of a tick at the start of a message. It returns the tick with
// these bits that is closest to newest, and the rest of the message.
func parseTick(b []byte, newest int) (tick int, rest []byte, err error) {
	if len(b) < tickSize {
		return 0, nil, errShort
	}
	d := int16(binary.LittleEndian.Uint16(b) - uint16(newest))
	return newest + int(d), b[tickSize:], nil
}
