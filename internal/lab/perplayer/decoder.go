package perplayer

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/seq"
)

// Decoder decodes the payloads of one [Encoder], which may be lost, duplicated, reordered or
// forged. Not safe for concurrent use.
type Decoder struct {
	origin
	codec   payloadCodec
	pairs   []pair
	decoded seq.Window // since the last desync
	sets    stateRing[*Set]
	states  stateRing[*modelState]
	cur     *Set
	next    uint64 // newest decoded sequence number + 1
	floor   uint64 // baselines before it were discarded

	epoch     uint8
	waiting   bool   // for the first snapshot of the epoch
	first     uint64 // sequence number of that snapshot
	noInitial bool
	malformed int // consecutive malformed payloads
}

// NewDecoder returns a decoder of objects of schema s. initial is the set that the encoder's
// [World] started from, or nil if that was empty.
func NewDecoder(s *Schema, initial *Set) *Decoder {
	d, err := Config{}.NewDecoder(s, initial)
	if err != nil {
		panic(err) // the defaults are valid
	}
	return d
}

// NewDecoder returns a decoder with configuration c, as the function [NewDecoder] does. An error
// names the invalid setting.
func (c Config) NewDecoder(s *Schema, initial *Set) (*Decoder, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Decoder{origin: s.newOrigin(initial)}
	d.sets, d.states = newStateRing(c.Ring, s.NewSet), newStateRing(c.Ring, s.newState)
	d.codec.schema, d.codec.Coder = s, rangecoder.NewCoder(rangecoder.MaxCount, true)
	return d, nil
}

// Decode decodes a payload and returns its set, which must not be modified. The set is valid until
// the next call. The set with the newest sequence number so far stays valid until that call has
// returned. Any input is safe. An error wraps one of [ErrLate], [ErrBaselineMissing], [ErrDesync]
// and [ErrMalformed]; the payload is then not acked. Only errors allocate.
func (d *Decoder) Decode(payload []byte) (Info, *Set, error) {
	h, coded, err := parseHeader(payload)
	if err != nil {
		return Info{}, nil, err
	}
	n := h.unwrap(d.next)
	info := Info{Seq: uint16(n), Baseline: int(h.distance), Bytes: len(payload)}
	if n+d.ring() < d.next || d.decoded.Has(n) {
		return info, nil, fmt.Errorf("%w: snapshot %d", ErrLate, info.Seq)
	}
	base, err := d.baseline(n, &h)
	if err != nil {
		return info, nil, err
	}
	if err := d.decode(n, base, h.distance > 0, coded); err != nil {
		d.countMalformed(err)
		return info, nil, fmt.Errorf("%w: snapshot %d", err, info.Seq)
	}
	set := d.cur
	info.Objects = set.Len()
	d.accept(n, base, &h)
	return info, set, nil
}

// baseline loads the baseline of snapshot n and returns its sequence number, 0 if it has none.
func (d *Decoder) baseline(n uint64, h *header) (base uint64, err error) {
	pc := &d.codec
	if h.distance == 0 {
		if want := d.load(pc, h.empty); h.checked && h.hash != want {
			d.noInitial = d.noInitial || !h.empty
			return 0, d.desync(n)
		}
		return 0, nil
	}
	base = n - h.distance
	set, from := d.sets.get(base), d.states.get(base)
	if h.distance > n || set == nil || from == nil {
		if base < d.floor || n < d.first {
			return 0, fmt.Errorf("%w: snapshot %d, %d after its baseline", ErrLate, uint16(n), h.distance)
		}
		return 0, d.missing(n, h.distance)
	}
	pc.refs.base, pc.refs.distance, pc.from = set, int64(h.distance), from
	if h.checked && h.hash != hash(set, from) {
		return 0, d.desync(n)
	}
	return base, nil
}

func (d *Decoder) ring() uint64 { return uint64(d.sets.ring.Cap()) }

// decode decodes the coded part into d.cur. delta reports that base is the baseline.
func (d *Decoder) decode(n, base uint64, delta bool, coded []byte) (err error) {
	pc := &d.codec
	pc.state, d.cur = d.states.take(), d.sets.take()
	defer func() {
		if err != nil {
			d.states.release(pc.state)
			d.sets.release(d.cur)
		}
	}()
	pc.copyState()
	pc.Dec.Reset(coded, 0)
	mask := uint32(0)
	if delta {
		mask = pc.mask(0)
	}
	for m := mask; m != 0; m &= m - 1 {
		lag := uint64(bits.TrailingZeros32(m)) + 1
		switch ref := base - lag; {
		case lag <= base && d.sets.get(ref) != nil:
		case lag <= base && (d.decoded.Has(ref) || ref+d.ring() < d.next): // it was discarded
			return ErrLate
		default:
			return d.missing(n, n-ref)
		}
	}
	pc.begin(mask, func(lag int) *Set { return d.sets.get(base - uint64(lag)) })
	d.cur.Reset()
	pc.invalid = malformed.ErrID
	var ok bool
	if d.pairs, ok = pc.objects(d.pairs, nil); !ok {
		return pc.invalid
	}
	pc.rows(d.pairs, d.cur)
	switch {
	case pc.Bad:
		return malformed.ErrBounds
	case !pc.Dec.Complete():
		return malformed.ErrLength
	}
	return nil
}

// accept stores the decoded snapshot and discards those that are no longer needed.
func (d *Decoder) accept(n, base uint64, h *header) {
	d.malformed = 0
	pc := &d.codec
	pc.updateObjects(d.pairs)
	d.states.put(n, pc.state)
	d.sets.put(n, d.cur)
	d.decoded.Add(n)
	d.next = max(d.next, n+1)
	if h.distance == 0 {
		if d.waiting && h.epoch == d.epoch {
			d.waiting, d.first = false, n
		}
		return
	}
	d.floor = max(d.floor, base, d.next-min(d.next, d.ring()))
	end := d.floor - min(d.floor, lateBaselines)
	d.states.removeBefore(end)
	d.sets.removeBefore(end - min(end, maxLag))
}

// lateBaselines is the number of older baselines to keep for payloads that arrive out of order.
const lateBaselines = 4

func (d *Decoder) missing(n, distance uint64) error {
	d.requestReset()
	return fmt.Errorf("%w: snapshot %d refers to the one %d before it", ErrBaselineMissing, uint16(n), distance)
}

// desync discards all snapshots and requests a reset.
func (d *Decoder) desync(n uint64) error {
	d.requestReset()
	d.decoded = seq.Window{}
	d.sets.clear()
	d.states.clear()
	return fmt.Errorf("%w: the baseline of snapshot %d", ErrDesync, uint16(n))
}

// maxMalformed consecutive malformed payloads suggest that the encoder uses other baselines.
const maxMalformed = 8

func (d *Decoder) countMalformed(err error) {
	if !errors.Is(err, ErrMalformed) {
		return
	}
	if d.malformed++; d.malformed == maxMalformed {
		d.malformed = 0
		d.requestReset()
	}
}

func (d *Decoder) requestReset() {
	if !d.waiting {
		d.epoch++
		d.waiting = true
	}
}

// Ack returns an ack of the snapshots decoded so far.
func (d *Decoder) Ack() Ack {
	a := Ack{None: !d.decoded.Any, NoInitial: d.noInitial, Epoch: d.epoch}
	if !a.None {
		a.Newest, a.Window = uint16(d.decoded.Newest), d.decoded.Low(d.ring()-1)
	}
	return a
}

// Memory returns the size of the stored snapshots in bytes.
func (d *Decoder) Memory() int {
	return d.sets.memory() + d.states.memory() + d.prior.memory() + d.initial.memory()
}
