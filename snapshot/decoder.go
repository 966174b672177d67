package snapshot

import (
	"fmt"
	"math/bits"
)

// Ack says which snapshots a decoder holds: the newest, and bit i of Window for the one i+1 before it.
type Ack struct {
	None   bool // nothing was decoded yet
	Newest uint16
	Window uint64
}

// Decoder rebuilds a world's snapshots from the payloads of one [Encoder], in whatever order they come.
type Decoder struct {
	walk   walk
	pairs  []pair
	sets   [Ring]*Set
	states [Ring]*state
	held   [Ring]uint64 // sequence + 1 of what is held, at its place
	prior  *state
	work   *state
	start  *Set
	cur    *Set
	newest uint64 // sequence + 1
}

// NewDecoder makes a decoder. initial is the set that the encoder's [World] started from, or nil for an empty one.
func NewDecoder(s *Schema, initial *Set) *Decoder {
	d := &Decoder{prior: s.newState(), work: s.newState(), start: s.NewSet(), cur: s.NewSet()}
	if initial != nil {
		d.start.CopyFrom(initial)
	}
	d.walk.schema = s
	for i := range d.sets {
		d.sets[i], d.states[i] = s.NewSet(), s.newState()
	}
	return d
}

// Decode rebuilds the snapshot of a payload and gives its name and its set, which is the decoder's own and stays as
// it is for [Ring] snapshots. Any input is safe; what is refused wraps an error of this package and changes nothing.
// It allocates nothing once warm, but for errors.
func (d *Decoder) Decode(payload []byte) (uint16, *Set, error) {
	seq, distance, coded, err := parseHeader(payload, d.newest)
	if err != nil {
		return 0, nil, err
	}
	at := seq % Ring
	if d.newest > seq && (d.newest-seq > Ring || d.held[at] == seq+1) || d.held[at] > seq+1 {
		return uint16(seq), nil, fmt.Errorf("%w: snapshot %d", ErrLate, uint16(seq))
	}
	w := &d.walk
	w.decoding, w.state = true, d.work
	w.dec.Reset(coded, 0)
	if err := d.baseline(seq, distance); err != nil {
		return uint16(seq), nil, err
	}
	var ok bool
	d.cur.Reset()
	if d.pairs, ok = w.names(d.pairs, nil); !ok {
		return uint16(seq), nil, fmt.Errorf("%w: the objects of snapshot %d", ErrMalformed, uint16(seq))
	}
	if !w.rows(d.pairs, d.cur) {
		return uint16(seq), nil, fmt.Errorf("%w: a component of snapshot %d is out of its bounds", ErrMalformed, uint16(seq))
	}
	if !w.dec.Complete() {
		return uint16(seq), nil, fmt.Errorf("%w: snapshot %d ends early or late", ErrMalformed, uint16(seq))
	}
	d.states[at].copyFrom(w.state)
	w.keep(d.states[at], d.pairs)
	d.sets[at], d.cur = d.cur, d.sets[at]
	d.held[at] = seq + 1
	d.newest = max(d.newest, seq+1)
	return uint16(seq), d.sets[at], nil
}

func (d *Decoder) baseline(seq, distance uint64) error {
	w := &d.walk
	w.hist.base, w.hist.distance = d.start, 1
	if distance == 0 {
		w.borrow(d.prior)
		w.begin(0, nil)
		return nil
	}
	if distance > seq || distance >= Ring-reach || !d.holds(seq-distance) {
		return fmt.Errorf("%w: snapshot %d, %d before it", ErrBaselineMissing, uint16(seq), distance)
	}
	base := seq - distance
	w.hist.base, w.hist.distance = d.sets[base%Ring], int64(distance)
	w.borrow(d.states[base%Ring])
	mask := w.mask(0)
	for m := mask; m != 0; m &= m - 1 {
		if lag := uint64(bits.TrailingZeros32(m)) + 1; lag > base || !d.holds(base-lag) {
			return fmt.Errorf("%w: snapshot %d reads one %d before its baseline", ErrBaselineMissing, uint16(seq), lag)
		}
	}
	w.begin(mask, func(lag int) *Set { return d.sets[(base-uint64(lag))%Ring] })
	return nil
}

func (d *Decoder) holds(seq uint64) bool { return d.held[seq%Ring] == seq+1 }

// Ack says what is held, for the encoder.
func (d *Decoder) Ack() Ack {
	if d.newest == 0 {
		return Ack{None: true}
	}
	a := Ack{Newest: uint16(d.newest - 1)}
	for i := range min(uint64(Ring-1), d.newest-1) {
		if d.holds(d.newest - 2 - i) {
			a.Window |= 1 << i
		}
	}
	return a
}
