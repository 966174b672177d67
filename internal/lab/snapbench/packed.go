package snapbench

import (
	"fmt"

	"github.com/uplink-rpc/uplink/snapshot"
)

// packings are the rows of the table; each adds a technique to those above it.
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

// worlds determines the recording and the baselines.
type worlds uint8

const (
	// recorded frames have no velocities; each is packed against the one Distance before it.
	recorded worlds = iota
	// withVelocities adds velocities to the recording.
	withVelocities
	// fromInitial packs each frame against the first one, as before any ack.
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
	s := Cubes()
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
