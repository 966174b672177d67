package areas

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// maxEntered is the maximum number of objects that can enter a group after a baseline.
const maxEntered = maxArrivals * snapshot.Ring

var errEntered = fmt.Errorf("%w: objects that entered a group", snapshot.ErrMalformed)

// eachEntered calls f for each object that entered a group, and returns the rest of b. If delta is
// set, coded begins with the object's id. f may be nil.
func eachEntered(b []byte, f func(coded []byte, delta bool) error) ([]byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > maxEntered {
		return nil, errEntered
	}
	b = b[k:]
	for range n {
		size, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, errEntered
		}
		delta, end := size&1 != 0, size>>1
		b = b[k:]
		if delta {
			end += 2
		}
		if end > uint64(len(b)) {
			return nil, errEntered
		}
		if f != nil {
			if err := f(b[:end], delta); err != nil {
				return nil, err
			}
		}
		b = b[end:]
	}
	return b, nil
}

// skipEntered returns b without the objects that entered a group.
func (d *Decoder) skipEntered(p *receivedPart, b []byte) ([]byte, error) {
	if !p.entered {
		return b, nil
	}
	return eachEntered(b, nil)
}

// entered decodes the objects that entered a group, adds them to the decoded group, and returns the
// rest of b.
func (d *Decoder) entered(p *receivedPart, b []byte) ([]byte, error) {
	t, from := p.typ, p.distance
	if from == 0 {
		from = d.distance
	}
	return eachEntered(b, func(coded []byte, delta bool) error {
		distance := 0
		var base snapshot.Packed
		if delta {
			distance = int(from)
			var ok bool
			if base, ok = d.find(t, from, binary.LittleEndian.Uint16(coded)); !ok {
				return fmt.Errorf("%w: an object that entered a group is in no group of snapshot %d", snapshot.ErrMalformed, uint16(d.n-from))
			}
			coded = coded[2:]
		}
		if err := t.groups.Decode(t.one, coded, distance, func(age int) *snapshot.Packed {
			if age > 0 {
				return nil
			}
			return &base
		}); errors.Is(err, snapshot.ErrBaselineMissing) {
			return fmt.Errorf("%w: an object that entered a group has references", snapshot.ErrMalformed)
		} else if err != nil {
			return fmt.Errorf("%w: %w", snapshot.ErrMalformed, err)
		}
		if t.one.Len() != 1 || d.objects+t.group.Len() >= MaxObjects*len(d.types) {
			return errEntered
		}
		if err := t.group.Insert(t.one, 0); err != nil {
			return fmt.Errorf("%w: %w", snapshot.ErrMalformed, err)
		}
		return nil
	})
}

// find returns the object with an id in the message at a distance.
func (d *Decoder) find(t *typeDecoder, distance uint64, id uint16) (one snapshot.Packed, ok bool) {
	m := d.at(distance)
	if m == nil {
		return one, false
	}
	for _, e := range m.members {
		if e.set.typ != t {
			continue
		}
		if i, ok := e.set.Index(id); ok {
			return e.set.Only(i), true
		}
	}
	return one, false
}

// An element of typeDecoder.order consists, from the highest bits, of the object's id, the index of
// its group in Decoder.visible, and the object's index in the group.
const (
	idShift    = 32
	groupShift = 16
	orderMask  = 1<<16 - 1
)

// order merges the visible groups of each type, by ascending object id. If an object is in several
// groups, because some are stale, the group with the lowest age counts.
func (d *Decoder) order() error {
	for _, t := range d.types {
		t.merged.Reset()
		t.order, t.mergedAges = t.order[:0], ages{of: t.mergedAges.of[:0]}
	}
	slices.SortStableFunc(d.visible, func(a, b receivedMember) int { return cmp.Compare(a.age, b.age) })
	for k, m := range d.visible {
		t := m.set.typ
		for i := range m.set.Len() {
			t.order = append(t.order, uint64(m.set.Object(i).ID)<<idShift|uint64(k)<<groupShift|uint64(i))
		}
	}
	for _, t := range d.types {
		slices.Sort(t.order)
		last := uint64(1) << 16
		for _, o := range t.order {
			if o>>idShift == last {
				continue
			}
			last = o >> idShift
			m := &d.visible[o>>groupShift&orderMask]
			if err := t.merged.AppendPacked(&m.set.Packed, int(o&orderMask)); err != nil {
				return fmt.Errorf("%w: %w", snapshot.ErrMalformed, err)
			}
			t.mergedAges.of = append(t.mergedAges.of, m.age)
			t.mergedAges.any = t.mergedAges.any || m.age > 0
		}
	}
	return nil
}
