package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/snapshot"
)

// maxSnapshot is the maximum size of a snapshot in bytes.
const maxSnapshot = 1 << 16

// snapshotSender codes each snapshot against a baseline that the client acknowledged.
type snapshotSender struct {
	pacer
	cubes   *snapshot.Type[world.Visual]
	world   *snapshot.World
	encoder *snapshot.Encoder
	buf     []byte
}

// snapshotReceiver interpolates linearly, because the rate of snapshots is high.
type snapshotReceiver struct {
	playback
	typ        *snapshot.Type[world.Visual]
	decoder    *snapshot.Decoder
	ackPending bool
}

func newSnapshots(initial []world.Body, o Options) (Sender, Receiver, error) {
	t, err := snapshot.Compile[world.Visual]("Cube")
	if err != nil {
		return nil, nil, err
	}
	first := t.Schema().NewSet()
	if err := fill(t, first, initial); err != nil {
		return nil, nil, err
	}
	w := snapshot.NewWorld(t.Schema(), first)
	p, err := newPlayback(len(initial), interpolate.Linear, o)
	return &snapshotSender{pacer: newPacer(o), cubes: t, world: w, encoder: snapshot.NewEncoder(t.Schema(), w)},
		&snapshotReceiver{playback: p, typ: t.Clone(), decoder: snapshot.NewDecoder(t.Schema(), first)}, err
}

// fill adds all cubes to set.
func fill(t *snapshot.Type[world.Visual], set *snapshot.Set, bodies []world.Body) error {
	var seen world.Visual
	for i := range bodies {
		seen.FromBody(&bodies[i])
		if err := t.Add(set, snapshot.Object{ID: uint16(i)}, &seen); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshotSender) Send(f *Frame, emit func([]byte)) error {
	if !s.due(f.Tick) {
		return nil
	}
	if err := fill(s.cubes, s.world.Begin(), f.Bodies); err != nil {
		return err
	}
	b, _, err := s.encoder.Append(appendTick(s.buf[:0], f.Tick), maxSnapshot)
	if err != nil {
		return err
	}
	s.buf = b
	s.spent(len(b))
	emit(b)
	return nil
}

func (s *snapshotSender) SetBudget(bits int) { s.budget = bits }

func (s *snapshotSender) Ack(b []byte) error {
	a, _, err := snapshot.ParseAck(b)
	if err != nil {
		return err
	}
	return s.encoder.Ack(a)
}

func (r *snapshotReceiver) Ack(dst []byte) []byte {
	if !r.ackPending {
		return dst
	}
	r.ackPending = false
	a := r.decoder.Ack()
	return a.Append(dst)
}

func (r *snapshotReceiver) Receive(at time.Duration, message []byte) error {
	tick, b, err := parseTick(message, r.newest)
	if err != nil {
		return err
	}
	_, set, err := r.decoder.Decode(b)
	switch {
	case errors.Is(err, snapshot.ErrLate):
		return nil
	case err != nil:
		return err
	case set.Len() != len(r.cubes):
		return fmt.Errorf("snapshot has %d cubes, want %d", set.Len(), len(r.cubes))
	}
	r.ackPending = true
	for i := range r.cubes {
		if err := r.typ.Get(&r.cubes[i], set, i); err != nil {
			return err
		}
	}
	return r.add(at, tick)
}
