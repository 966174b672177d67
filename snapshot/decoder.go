package snapshot

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// Decoder rebuilds a world's snapshots from the payloads of one [Encoder], in whatever order they come.
type Decoder struct {
	walk   walk
	pairs  []pair
	held   []uint64 // sequence + 1 of what came, at its place
	sets   shelf[*Set]
	states shelf[*state]
	prior  *state
	start  *Set
	empty  *Set
	hash   uint16 // of start
	cur    *Set
	latest uint64 // sequence + 1 of the newest that was decoded
	top    uint64 // and of the newest that is held
	floor  uint64 // baselines before it are gone

	epoch     uint8
	waiting   bool   // for the first snapshot of the epoch
	first     uint64 // that one
	noInitial bool
	doubts    int // malformed payloads in a row
}

// NewDecoder makes a decoder. initial is the set that the encoder's [World] started from, or nil for an empty one.
func NewDecoder(s *Schema, initial *Set) *Decoder {
	d, err := Config{}.NewDecoder(s, initial)
	if err != nil {
		panic(err) // the defaults are right
	}
	return d
}

// NewDecoder makes a decoder as [NewDecoder] does. An error names the setting that is wrong.
func (c Config) NewDecoder(s *Schema, initial *Set) (*Decoder, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Decoder{
		held: make([]uint64, c.Ring), sets: newShelf(c.Ring, s.NewSet), states: newShelf(c.Ring, s.newState),
		prior: s.newState(), start: s.NewSet(), empty: s.NewSet(),
	}
	if initial != nil {
		d.start.CopyFrom(initial)
	}
	d.hash = hash(d.start, d.prior)
	d.walk.schema, d.walk.Coder = s, rangecoder.NewCoder(rangecoder.MaxCount, true)
	return d, nil
}

// Decode rebuilds the snapshot of a payload and gives its name and its set, which is the decoder's own and valid until
// the next call. Any input is safe; what is refused wraps an error of this package, and is not acked. It allocates
// nothing once warm, but for errors.
func (d *Decoder) Decode(payload []byte) (uint16, *Set, error) {
	h, coded, err := parseHeader(payload)
	if err != nil {
		return 0, nil, err
	}
	seq := h.unwrap(d.latest)
	if d.latest > seq && d.latest-seq > d.ring() || d.holds(seq) {
		return uint16(seq), nil, fmt.Errorf("%w: snapshot %d", ErrLate, uint16(seq))
	}
	base, err := d.baseline(seq, &h)
	if err != nil {
		return uint16(seq), nil, err
	}
	if err := d.rebuild(seq, base, h.distance > 0, coded); err != nil {
		d.doubt(err)
		return uint16(seq), nil, fmt.Errorf("%w: snapshot %d", err, uint16(seq))
	}
	set := d.cur
	d.accept(seq, base, &h)
	return uint16(seq), set, nil
}

// baseline finds what the payload was coded from.
func (d *Decoder) baseline(seq uint64, h *header) (base uint64, err error) {
	w := &d.walk
	w.hist.distance = 1
	if h.distance == 0 {
		w.hist.base, w.from = d.start, d.prior
		if h.nothing {
			w.hist.base = d.empty
		}
		if h.checked && h.hash != d.startHash(h) {
			d.noInitial = d.noInitial || !h.nothing
			return 0, d.desync(seq)
		}
		return 0, nil
	}
	base = seq - h.distance
	set, from := d.sets.get(base), d.states.get(base)
	if h.distance > seq || set == nil || from == nil {
		if base < d.floor || seq < d.first {
			return 0, fmt.Errorf("%w: snapshot %d, %d after its baseline", ErrLate, uint16(seq), h.distance)
		}
		return 0, d.missing(seq, h.distance)
	}
	w.hist.base, w.hist.distance, w.from = set, int64(h.distance), from
	if h.checked && h.hash != hash(w.hist.base, w.from) {
		return 0, d.desync(seq)
	}
	return base, nil
}

func (d *Decoder) startHash(h *header) uint16 {
	if h.nothing {
		return hash(d.empty, d.prior)
	}
	return d.hash
}

// rebuild makes cur the set of the coded part.
func (d *Decoder) rebuild(seq, base uint64, known bool, coded []byte) (err error) {
	w := &d.walk
	w.state, d.cur = d.states.take(), d.sets.take()
	defer func() {
		if err != nil {
			d.states.giveBack(w.state)
			d.sets.giveBack(d.cur)
		}
	}()
	w.borrow(w.from)
	w.Dec.Reset(coded, 0)
	mask := uint32(0)
	if known {
		mask = w.mask(0)
	}
	for m := mask; m != 0; m &= m - 1 {
		lag := uint64(bits.TrailingZeros32(m)) + 1
		switch {
		case lag <= base && d.sets.get(base-lag) != nil:
		case lag <= base && (d.holds(base-lag) || base-lag+d.ring() < d.latest): // it is given up
			return ErrLate
		default:
			return d.missing(seq, seq-base+lag)
		}
	}
	w.begin(mask, func(lag int) *Set { return d.sets.get(base - uint64(lag)) })
	d.cur.Reset()
	if d.pairs, err = w.decodeNames(d.pairs); err != nil {
		return err
	}
	if !w.rows(d.pairs, d.cur) {
		return ErrBounds
	}
	if !w.Dec.Complete() {
		return ErrLength
	}
	return nil
}

// accept keeps what was rebuilt.
func (d *Decoder) accept(seq, base uint64, h *header) {
	d.doubts = 0
	w := &d.walk
	w.keep(d.pairs)
	d.states.put(seq, w.state)
	d.sets.put(seq, d.cur)
	d.held[seq%d.ring()] = seq + 1
	d.latest, d.top = max(d.latest, seq+1), max(d.top, seq+1)
	if h.distance == 0 {
		if d.waiting && h.epoch == d.epoch {
			d.waiting, d.first = false, seq
		}
		return
	}
	if d.latest > d.ring() {
		d.floor = max(d.floor, d.latest-d.ring())
	}
	d.floor = max(d.floor, base)
	oldest := d.floor - min(d.floor, late)
	d.states.dropBefore(oldest)
	d.sets.dropBefore(oldest - min(oldest, reach))
}

// late is how far before the newest baseline others are kept, for payloads that were overtaken. The sets that those read
// are kept for as long.
const late = 4

func (d *Decoder) ring() uint64 { return uint64(len(d.held)) }

func (d *Decoder) holds(seq uint64) bool { return d.held[seq%d.ring()] == seq+1 }

// missing asks for a reset, unless one is on its way.
func (d *Decoder) missing(seq, distance uint64) error {
	d.ask()
	return fmt.Errorf("%w: snapshot %d reads one %d before it", ErrBaselineMissing, uint16(seq), distance)
}

// desync forgets all that is held and asks for a reset.
func (d *Decoder) desync(seq uint64) error {
	d.ask()
	clear(d.held)
	d.sets.clear()
	d.states.clear()
	d.top = 0
	return fmt.Errorf("%w: the baseline of snapshot %d", ErrDesync, uint16(seq))
}

// doubtful is how many payloads in a row that no encoder writes are taken to say that the encoder writes them from other
// snapshots than are held.
const doubtful = 8

// doubt asks for a reset when too many payloads were malformed.
func (d *Decoder) doubt(err error) {
	if !errors.Is(err, ErrMalformed) {
		return
	}
	if d.doubts++; d.doubts == doubtful {
		d.doubts = 0
		d.ask()
	}
}

func (d *Decoder) ask() {
	if !d.waiting {
		d.epoch++
		d.waiting = true
	}
}

// Ack says what is held, for the encoder.
func (d *Decoder) Ack() Ack {
	a := Ack{None: d.top == 0, NoInitial: d.noInitial, Epoch: d.epoch}
	if a.None {
		return a
	}
	a.Newest = uint16(d.top - 1)
	for i := range min(d.ring()-1, d.top-1) {
		if d.holds(d.top - 2 - i) {
			a.Window |= 1 << i
		}
	}
	return a
}

// Memory is how many bytes the decoder keeps of what it decoded.
func (d *Decoder) Memory() int {
	return d.sets.memory() + d.states.memory() + d.prior.memory() + d.start.memory()
}
