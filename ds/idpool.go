package ds

import (
	"errors"
	"fmt"
)

// ErrNoIDs reports that all ids of an [IDPool] are in use.
var ErrNoIDs = errors.New("ds: all ids of the pool are in use")

// IDPool allocates the ids of a world's objects, with generations that distinguish successive
// objects with the same id. It hands out the free id that was released the longest time ago. An id
// with the same generation is handed out again only after 256 releases of that id, so a client that
// missed snapshots does not mistake one object for another. Not safe for concurrent use.
type IDPool struct {
	first       uint16
	free        []uint16 // ring buffer of the free ids; the next one is at head
	head, count int
	generations []uint8 // by id: generation of its current object, or of the next one if the id is free
	used        []bool  // by id
}

// NewIDPool returns a pool of the ids from first to last, which it hands out in this order at
// first. A world contains at most 4,096 objects at a time.
func NewIDPool(first, last uint16) (*IDPool, error) {
	if first > last {
		return nil, fmt.Errorf("ds: a pool of the ids %d to %d has none", first, last)
	}
	n := int(last) - int(first) + 1
	p := &IDPool{first: first, free: make([]uint16, n), count: n, generations: make([]uint8, n), used: make([]bool, n)}
	for i := range p.free {
		p.free[i] = first + uint16(i)
	}
	return p, nil
}

// Take returns the id of a new object and its generation, for [World.Put]. If all ids are in use,
// the error is an [ErrNoIDs].
func (p *IDPool) Take() (id uint16, generation uint8, err error) {
	if p.count == 0 {
		return 0, 0, fmt.Errorf("%w: %d to %d", ErrNoIDs, p.first, int(p.first)+len(p.used)-1)
	}
	id = p.free[p.head]
	p.head = (p.head + 1) % len(p.free)
	p.count--
	p.used[id-p.first] = true
	return id, p.generations[id-p.first], nil
}

// Release makes the id of an object available again, after its last Put. An error means that no
// object with that id and generation exists, for example because it was released before; the pool
// is unchanged then.
func (p *IDPool) Release(id uint16, generation uint8) error {
	i := int(id) - int(p.first)
	if i < 0 || i >= len(p.used) {
		return fmt.Errorf("ds: release object %d: the pool has the ids %d to %d", id, p.first, int(p.first)+len(p.used)-1)
	}
	if !p.used[i] || p.generations[i] != generation {
		return fmt.Errorf("ds: release object %d of generation %d: it is not in use", id, generation)
	}
	p.used[i] = false
	p.generations[i]++
	p.free[(p.head+p.count)%len(p.free)] = id
	p.count++
	return nil
}
