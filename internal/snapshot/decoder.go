package snapshot

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/seq"
)

// Decoder decodes the payloads of a world, which may be lost, duplicated, reordered or forged. Not
// safe for concurrent use.
type Decoder struct {
	origin
	codec   payloadCodec
	decoded seq.Window // snapshots decoded since the last desync
	sets    setRing
	base    unpackedSet // scratch for the baseline
	old     [refs]Set   // scratch for the references
	newest  *Set        // set of the newest snapshot
	cur     *Set        // set into which the next snapshot is decoded
	next    uint64      // newest decoded sequence number + 1
	floor   uint64      // oldest sequence number that may still be a baseline
	step    uint64      // step of the references of the newest snapshot

	epoch     uint8
	waiting   bool   // a reset was requested, and no snapshot without a baseline has arrived since
	first     uint64 // sequence number of the snapshot that completed the last reset
	noInitial bool
	malformed int // consecutive malformed payloads
}

// NewDecoder returns a decoder of objects of schema s. initial is the set that the encoder's
// [History] started from, or nil if that was empty. It must not be modified afterwards.
func NewDecoder(s *Schema, initial *Set) *Decoder {
	d := &Decoder{origin: s.newOrigin(initial), sets: newSetRing(), base: unpackedSet{Set: Set{schema: s}}, newest: s.NewSet(), cur: s.NewSet()}
	for i := range d.old {
		d.old[i].schema = s
	}
	d.codec.init(s, true)
	return d
}

// Decode decodes a payload and returns its set, which must not be modified. The set is valid until
// the next call. The set with the newest sequence number so far stays valid until that call has
// returned. Any input is safe. An error wraps one of [ErrLate], [ErrBaselineMissing], [ErrDesync]
// and [ErrMalformed]; the payload is then not acked. Only errors and objects that were added or
// removed allocate.
func (d *Decoder) Decode(payload []byte) (Info, *Set, error) {
	h, coded, err := parseHeader(payload)
	if err != nil {
		return Info{}, nil, err
	}
	n := h.unwrap(d.next)
	info := Info{Baseline: Baseline{Distance: int(h.distance), Empty: h.empty}, Seq: uint16(n), Bytes: len(payload)}
	if n+Ring < d.next || d.decoded.Has(n) {
		return info, nil, fmt.Errorf("%w: snapshot %d", ErrLate, info.Seq)
	}
	base, err := d.baseline(n, &h)
	if err != nil {
		return info, nil, err
	}
	if err := d.decode(n, base, &h, coded); err != nil {
		d.countMalformed(err)
		return info, nil, fmt.Errorf("%w: snapshot %d", err, info.Seq)
	}
	set := d.cur
	info.Objects, info.Step = set.Len(), int(d.codec.refs.step)
	d.accept(n, base, &h)
	return info, set, nil
}

// baseline loads the baseline of snapshot n and returns its sequence number, 0 if it has none.
func (d *Decoder) baseline(n uint64, h *header) (base uint64, err error) {
	set, hash, distance := d.initial, d.initialHash, int64(1)
	switch {
	case h.distance == 0 && h.empty:
		set, hash = d.empty, d.emptyHash
	case h.distance > 0:
		base, distance = n-h.distance, int64(h.distance)
		stored := d.sets.get(base)
		if h.distance > n || stored == nil {
			if base < d.floor || n < d.first {
				return 0, fmt.Errorf("%w: snapshot %d, %d after its baseline", ErrLate, uint16(n), h.distance)
			}
			return 0, d.missing(n, h.distance)
		}
		if set = d.base.load(stored); h.checked {
			hash = set.hash()
		}
	}
	if h.checked && h.hash != hash {
		d.noInitial = d.noInitial || h.distance == 0 && !h.empty
		return 0, d.desync(n)
	}
	d.codec.refs.begin(set, distance, 0)
	return base, nil
}

// decode decodes the coded part into d.cur.
func (d *Decoder) decode(n, base uint64, h *header, coded []byte) (err error) {
	pc := &d.codec
	pc.Dec.Reset(coded, 0)
	if h.distance > 0 {
		pc.refs.step = pc.codeStep(0)
	}
	if pc.refs.step > 0 {
		for i, steps := range References {
			lag := uint64(steps) * uint64(pc.refs.step)
			switch ref := base - lag; {
			case lag <= base && d.sets.get(ref) != nil:
				d.old[i].refer(d.sets.get(ref))
			case lag <= base && (d.decoded.Has(ref) || ref+Ring < d.next): // the set was discarded
				return ErrLate
			default:
				return d.missing(n, n-ref)
			}
		}
	}
	pc.refs.loadAll(&d.old)
	return pc.decodeInto(d.cur, d.model)
}

// accept stores the decoded snapshot, and discards snapshots to which later payloads cannot refer.
func (d *Decoder) accept(n, base uint64, h *header) {
	d.malformed = 0
	p, from := d.sets.take(), (*Packed)(nil)
	if h.distance > 0 {
		from = d.sets.get(base)
	}
	p.store(d.cur, d.sets.get(d.next-1), from, d.codec.written)
	d.sets.put(n, p)
	d.decoded.Add(n)
	if n >= d.next {
		d.next, d.newest, d.cur = n+1, d.cur, d.newest
	}
	if h.distance == 0 {
		if d.waiting {
			d.waiting, d.first = false, n
		}
		return
	}
	d.floor, d.step = max(d.floor, base, d.next-min(d.next, Ring)), uint64(d.codec.refs.step)
	d.sets.removeBefore(d.floor - min(d.floor, MaxAge(d.step)))
}

func (d *Decoder) missing(n, distance uint64) error {
	d.requestReset()
	return fmt.Errorf("%w: snapshot %d refers to the one %d before it", ErrBaselineMissing, uint16(n), distance)
}

// desync discards all snapshots and requests a reset.
func (d *Decoder) desync(n uint64) error {
	d.requestReset()
	d.decoded = seq.Window{}
	d.sets.clear()
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
		a.Newest, a.Window = uint16(d.decoded.Newest), d.decoded.Low(Ring-1)
	}
	return a
}

// Memory returns the size of the stored snapshots in bytes.
func (d *Decoder) Memory() int {
	sum := memory(d.initial, &d.base.Set, d.newest, d.cur) + 8*cap(d.base.words)
	for _, p := range d.sets.all() {
		sum += p.Memory()
	}
	return sum
}
