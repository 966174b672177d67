package snapshot

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Reasons for which a payload or an ack is dropped, also by package statesync. All of them occur on
// a lossy network or under attack: count them.
var (
	// ErrLate reports that the payload was decoded before, or arrived after so many newer ones that
	// its baseline was discarded.
	ErrLate = snapshot.ErrLate
	// ErrBaselineMissing reports that the receiver does not have the baseline, or another snapshot
	// that the payload refers to. The next acks request a reset.
	ErrBaselineMissing = snapshot.ErrBaselineMissing
	// ErrDesync reports that the ends hold different objects or models under the sequence number of
	// the baseline. The next acks request a reset.
	ErrDesync = snapshot.ErrDesync
	// ErrMalformed reports a payload or an ack that no sender of these objects writes.
	ErrMalformed = snapshot.ErrMalformed
	// ErrAck reports an ack of a payload that was never sent. The ack has no effect.
	ErrAck = snapshot.ErrAck
)

// ErrTooLarge reports that a snapshot exceeds the limit of [Sender.Append].
var ErrTooLarge = snapshot.ErrTooLarge

var errEmpty = errors.New("snapshot: no snapshot, call World.Begin first")

// World stores the newest snapshots of objects of type T, for the senders of all players.
type World[T any] struct {
	typ    *snapshot.Type[T]
	stored *stored
}

// stored is a world, and the payloads of its newest snapshot.
type stored struct {
	world    *snapshot.History
	newest   *snapshot.Set
	encoder  snapshot.Encoder
	payloads []payload
}

type payload struct {
	baseline snapshot.Baseline
	coded    []byte
}

// NewWorld returns a world of objects of T, whose fields and tags are those of package schema. name
// is the name of the objects in errors. initial, which may be nil, puts the objects of a state that
// both ends know, in ascending order of ids: the first snapshots are coded against it. An error
// names the invalid field or object, or the field that exceeds the limit of 32 fields or 128
// components.
func NewWorld[T any](name string, initial func(put func(id uint16, generation uint8, v *T) error) error) (*World[T], error) {
	typ, first, err := compile(name, initial)
	if err != nil {
		return nil, err
	}
	return &World[T]{typ, &stored{world: snapshot.NewHistory(typ.Schema(), first)}}, nil
}

func compile[T any](name string, initial func(put func(id uint16, generation uint8, v *T) error) error) (*snapshot.Type[T], *snapshot.Set, error) {
	typ, err := snapshot.Compile[T](name)
	if err != nil || initial == nil {
		return typ, nil, err
	}
	first := typ.Schema().NewSet()
	return typ, first, initial(func(id uint16, generation uint8, v *T) error {
		return typ.Add(first, snapshot.Object{ID: id, Generation: generation}, v)
	})
}

// Begin starts the next snapshot, without objects.
func (w *World[T]) Begin() {
	w.stored.newest, w.stored.payloads = w.stored.world.Begin(), w.stored.payloads[:0]
}

// Put adds an object to the snapshot that Begin started, before any sender has encoded that. Its id
// must be higher than all others. If an id is reused for another object, that object must have
// another generation. If a field cannot hold its value, the error wraps a *schema.RangeError. After
// an error the snapshot is unchanged. Put does not allocate once warm, except for fields that are
// encoded as msgpack.
func (w *World[T]) Put(id uint16, generation uint8, v *T) error {
	if w.stored.newest == nil {
		return errEmpty
	}
	return w.typ.Add(w.stored.newest, snapshot.Object{ID: id, Generation: generation}, v)
}

// NewSender returns a sender of the world to a player whose [Receiver] has decoded nothing yet.
func (w *World[T]) NewSender() *Sender { return &Sender{world: w.stored} }

// Sender encodes the snapshots of one world for one player.
type Sender struct {
	world    *stored
	receipts snapshot.Receipts
}

// Append appends the payload of the newest snapshot, coded against the newest one that the player
// has acked, and returns the extended slice. If the payload has more than limit bytes, the error is
// [ErrTooLarge]: dst is unchanged, and the snapshot counts as not sent. Append does not allocate
// once warm if dst has room.
func (s *Sender) Append(dst []byte, limit int) ([]byte, error) {
	if s.world.newest == nil {
		return dst, errEmpty
	}
	n := s.world.world.Next() - 1
	baseline := s.receipts.Baseline(n)
	coded, err := s.world.encode(baseline)
	if err != nil {
		return dst, err
	}
	if len(coded) > limit {
		return dst, fmt.Errorf("%w: snapshot %d has %d bytes, at most %d fit", ErrTooLarge, uint16(n), len(coded), limit)
	}
	s.receipts.Sent(n, baseline)
	return append(dst, coded...), nil
}

// encode returns the payload of the newest snapshot that is coded against a baseline.
func (w *stored) encode(baseline snapshot.Baseline) ([]byte, error) {
	for i := range w.payloads {
		if w.payloads[i].baseline == baseline {
			return w.payloads[i].coded, nil
		}
	}
	n := len(w.payloads)
	p := slices.Grow(w.payloads, 1)[:n+1] // reuses the memory of an earlier payload
	coded, _, err := w.encoder.Append(p[n].coded[:0], w.world, baseline, math.MaxInt)
	if err != nil {
		return nil, err
	}
	p[n] = payload{baseline, coded}
	w.payloads = p
	return coded, nil
}

// Ack processes an ack of the player's receiver, of which any input is safe. Old and repeated acks
// have no effect. An error wraps [ErrMalformed] or [ErrAck]; the ack then has no effect either.
func (s *Sender) Ack(ack []byte) error {
	a, rest, err := snapshot.ParseAck(ack)
	if err == nil && len(rest) > 0 {
		err = ErrMalformed
	}
	if err == nil {
		_, err = s.receipts.Ack(a)
	}
	return err
}

// Receiver decodes the payloads of one [Sender].
type Receiver[T any] struct {
	typ     *snapshot.Type[T]
	decoder *snapshot.Decoder
	newest  Snapshot[T]
}

// Snapshot is the objects of a world at one time.
type Snapshot[T any] struct {
	// Seq is the low 16 bits of the number of the snapshot, which ascends from 0.
	Seq uint16
	// Objects are ordered by ascending id.
	Objects []Object[T]
}

// Object is an object of a [Snapshot].
type Object[T any] struct {
	ID         uint16
	Generation uint8
	State      T
}

// NewReceiver returns a receiver of the objects of a [World] with the same T and initial state. An
// error names the invalid field or initial object.
func NewReceiver[T any](name string, initial func(put func(id uint16, generation uint8, v *T) error) error) (*Receiver[T], error) {
	typ, first, err := compile(name, initial)
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{typ: typ, decoder: snapshot.NewDecoder(typ.Schema(), first)}, nil
}

// Decode decodes a payload and returns its snapshot, which is valid until the next call. Any input
// is safe. An error wraps [ErrLate], [ErrBaselineMissing], [ErrDesync] or [ErrMalformed]; the
// payload has no other effect and is not acked. Only errors, objects that were added or removed,
// strings and fields that are encoded as msgpack allocate.
func (r *Receiver[T]) Decode(payload []byte) (*Snapshot[T], error) {
	info, set, err := r.decoder.Decode(payload)
	if err != nil {
		return nil, err
	}
	s := &r.newest
	s.Seq, s.Objects = info.Seq, slices.Grow(s.Objects[:0], set.Len())[:set.Len()]
	for i := range s.Objects {
		o, id := &s.Objects[i], set.Object(i)
		o.ID, o.Generation = id.ID, id.Generation
		if err := r.typ.Get(&o.State, set, i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// AppendAck appends an ack of the payloads decoded so far, for [Sender.Ack], and returns the
// extended slice. It has 2 or 3 bytes if nothing was lost, and at most 15.
func (r *Receiver[T]) AppendAck(dst []byte) []byte {
	a := r.decoder.Ack()
	return a.Append(dst)
}
