package way

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/snapshot"
)

// maxSnapshot bounds a snapshot's bytes.
const maxSnapshot = 1 << 16

// snapshotSender codes each snapshot against one that the client is known to hold.
type snapshotSender struct {
	pace
	cubes   *snapshot.Type[game.Seen]
	world   *snapshot.World
	encoder *snapshot.Encoder
	buf     []byte
}

// snapshotReceiver interpolates on lines, since there are many snapshots.
type snapshotReceiver struct {
	play
	typ     *snapshot.Type[game.Seen]
	decoder *snapshot.Decoder
	held    bool // something to ack
}

func newSnapshots(initial []world.Body, o Options) (Sender, Receiver, error) {
	t, err := snapshot.Compile[game.Seen]("Cube")
	if err != nil {
		return nil, nil, err
	}
	first := t.Schema().NewSet()
	if err := fill(t, first, initial); err != nil {
		return nil, nil, err
	}
	w := snapshot.NewWorld(t.Schema(), first)
	p, err := newPlay(len(initial), interpolate.Linear, o)
	return &snapshotSender{pace: newPace(o), cubes: t, world: w, encoder: snapshot.NewEncoder(t.Schema(), w)},
		&snapshotReceiver{play: p, typ: t.Clone(), decoder: snapshot.NewDecoder(t.Schema(), first)}, err
}

// fill makes a set of all cubes.
func fill(t *snapshot.Type[game.Seen], set *snapshot.Set, bodies []world.Body) error {
	var seen game.Seen
	for i := range bodies {
		seen.See(&bodies[i])
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
	if !r.held {
		return dst
	}
	r.held = false
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
	r.held = true
	for i := range r.cubes {
		if err := r.typ.Get(&r.cubes[i], set, i); err != nil {
			return err
		}
	}
	return r.take(at, tick)
}
