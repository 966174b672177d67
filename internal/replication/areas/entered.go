package areas

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/snapshot"
)

// maxEntered is the maximum number of objects that entered a group since a baseline.
const maxEntered = maxArrivals * snapshot.Ring

var errEntered = fmt.Errorf("%w: objects that entered a group", snapshot.ErrMalformed)

// eachEntered calls f for each object that entered a group, and returns what follows them. A delta
// begins with the object's id.
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

func (d *Decoder) skipEntered(p *receivedPart, b []byte) ([]byte, error) {
	if !p.entered {
		return b, nil
	}
	return eachEntered(b, nil)
}

// entered decodes the objects that entered a group, and adds them to its set.
func (d *Decoder) entered(p *receivedPart, set *countedSet, b []byte) ([]byte, error) {
	t := p.typ
	return eachEntered(b, func(coded []byte, delta bool) error {
		distance := 0
		if delta {
			distance = int(p.distance)
			if !d.find(t, p.distance, binary.LittleEndian.Uint16(coded)) {
				return fmt.Errorf("%w: an object that entered a group is in no group of snapshot %d", snapshot.ErrMalformed, uint16(d.n-p.distance))
			}
			coded = coded[2:]
		}
		if err := t.groups.Decode(t.one, coded, distance, func(age int) *snapshot.Set {
			if age > 0 {
				return nil
			}
			return t.before
		}); errors.Is(err, snapshot.ErrBaselineMissing) {
			return fmt.Errorf("%w: an object that entered a group has references", snapshot.ErrMalformed)
		} else if err != nil {
			return fmt.Errorf("%w: %w", snapshot.ErrMalformed, err)
		}
		if d.objects++; t.one.Len() != 1 || d.objects > MaxObjects*len(d.types) {
			return errEntered
		}
		if err := set.Insert(t.one, 0); err != nil {
			return fmt.Errorf("%w: %w", snapshot.ErrMalformed, err)
		}
		return nil
	})
}

// find stores the object with an id in the message that is older by a distance in t.before.
func (d *Decoder) find(t *typeDecoder, distance uint64, id uint16) bool {
	m := d.at(distance)
	if m == nil {
		return false
	}
	for _, e := range m.members {
		if e.set.typ != t {
			continue
		}
		if i, ok := e.set.Index(id); ok {
			t.before.Reset()
			return t.before.Insert(e.set.Set, i) == nil
		}
	}
	return false
}

// order merges the visible groups, by type and ascending id. If an object is in two of them,
// because one is stale, the other one counts.
func (d *Decoder) order() error {
	for _, t := range d.types {
		t.merged.Reset()
		t.order = t.order[:0]
	}
	for _, stale := range [...]bool{false, true} {
		for _, m := range d.visible {
			if m.stale == stale {
				m.set.typ.add(m.set.Set)
			}
		}
	}
	for _, t := range d.types {
		slices.SortStableFunc(t.order, func(a, b shownObject) int { return cmp.Compare(a.object.ID, b.object.ID) })
		last := -1
		for _, o := range t.order {
			if int(o.object.ID) == last {
				continue
			}
			last = int(o.object.ID)
			if err := t.merged.Insert(o.set, o.index); err != nil {
				return fmt.Errorf("%w: %w", snapshot.ErrMalformed, err)
			}
		}
	}
	return nil
}

func (t *typeDecoder) add(s *snapshot.Set) {
	for i := range s.Len() {
		t.order = append(t.order, shownObject{s.Object(i), s, i})
	}
}
