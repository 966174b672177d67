package snapbench

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

// packings are the rows of the table. Each row adds a technique to the rows above it.
var packings = []struct {
	name string
	set  func(*packing)
	kind worlds
}{
	{"packed with velocities: bounded, smallest three", func(*packing) {}, withVelocities},
	{"+ at rest: no velocity", func(p *packing) { p.atRest = true }, withVelocities},
	{"packed: bounded, smallest three", func(*packing) {}, recorded},
	{"+ changed bits", func(p *packing) { p.changed = true }, recorded},
	{"+ relative indices", func(p *packing) { p.indices = true }, recorded},
	{"+ delta positions", func(p *packing) { p.positions = true }, recorded},
	{"+ delta orientations", func(p *packing) { p.orientations = true }, recorded},
	{"+ same position, orientation", func(p *packing) { p.same = true }, recorded},
	{"so against the initial state alone", func(*packing) {}, fromInitial},
}

// worlds selects the recording and the baselines.
type worlds uint8

const (
	// recorded frames have no velocities. Each frame is packed against the frame Distance before
	// it.
	recorded worlds = iota
	// withVelocities adds velocities to the recording.
	withVelocities
	// fromInitial packs each frame against the first frame, as before the first ack.
	fromInitial
)

// Packed measures manual bit packing, technique by technique.
func Packed(sets []*snapshot.Set) ([]*Row, error) {
	var rows []*Row
	var use packing
	for _, step := range packings {
		step.set(&use)
		r, err := packed(step.name, use, step.kind, sets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func packed(name string, use packing, kind worlds, sets []*snapshot.Set) (*Row, error) {
	s := cubeset.Schema()
	if kind == withVelocities {
		s = moving()
	}
	cur, base, got := s.NewSet(), s.NewSet(), s.NewSet()
	p, r, bytes := newPacker(s, use), &Row{Form: name}, 0
	var buf []byte
	for n := Distance; n < len(sets); n++ {
		switch kind {
		case recorded:
			cur, base = sets[n], sets[n-Distance]
		case fromInitial:
			cur, base = sets[n], sets[0]
		case withVelocities:
			move(cur, sets, n)
			move(base, sets, n-Distance)
		}
		var err error
		if buf, err = p.append(buf[:0], cur, base); err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
		if err := p.decode(got, base, buf); err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
		if !got.Equal(cur) {
			r.Wrong++
		}
		r.Frames++
		r.Delivered++
		bytes += len(buf)
	}
	return r.finish(bytes), nil
}

const (
	// velocityUnit is the number of steps per m/s.
	velocityUnit = 32
	// maxVelocity bounds each component of a velocity, in steps: 64 m/s.
	maxVelocity = 1 << 11
	// position is the index of the first component of the position.
	position = 4
)

// moving returns the schema of a recorded cube with a velocity.
func moving() *snapshot.Schema {
	fields := append(cubeset.Schema().Fields(), snapshot.Field{Name: "Velocity", Class: schema.ClassNumber, N: 3, Lo: -maxVelocity, Hi: maxVelocity - 1})
	s, err := snapshot.NewSchema(fields...)
	if err != nil {
		panic(err)
	}
	return s
}

// move sets dst to frame n with velocities by central difference, limited to their bounds.
func move(dst *snapshot.Set, sets []*snapshot.Set, n int) {
	from, to := max(n-1, 0), min(n+1, len(sets)-1)
	scale := float64(velocityUnit*cubes.Rate) / float64(cubes.Unit*(to-from))
	dst.Reset()
	var row []int32
	for i := range sets[n].Len() {
		row = append(row[:0], sets[n].Row(i)...)
		a, b := sets[from].Row(i), sets[to].Row(i)
		for k := position; k < position+3; k++ {
			v := math.Round(float64(b[k]-a[k]) * scale)
			row = append(row, int32(max(-maxVelocity, min(maxVelocity-1, v))))
		}
		if err := dst.Add(sets[n].Object(i), row); err != nil {
			panic(err) // the row is within its bounds
		}
	}
}
