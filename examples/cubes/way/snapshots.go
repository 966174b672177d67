package way

import (
	"encoding/binary"
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
	rows[game.Seen]
	world   *snapshot.World
	encoder *snapshot.Encoder
	buf     []byte
}

// snapshotReceiver interpolates on lines, since there are many snapshots.
type snapshotReceiver struct {
	play
	rows[game.Seen]
	decoder *snapshot.Decoder
	held    bool // something to ack
}

func newSnapshots(initial []world.Body, o Options) (Sender, Receiver, error) {
	r, err := newRows[game.Seen]()
	if err != nil {
		return nil, nil, err
	}
	first := r.schema.NewSet()
	if err := fill(&r, first, initial); err != nil {
		return nil, nil, err
	}
	w := snapshot.NewWorld(r.schema, first)
	p, err := newPlay(len(initial), interpolate.Linear, o)
	if err != nil {
		return nil, nil, err
	}
	there, err := newRows[game.Seen]()
	return &snapshotSender{pace: newPace(o), rows: r, world: w, encoder: snapshot.NewEncoder(r.schema, w)},
		&snapshotReceiver{play: p, rows: there, decoder: snapshot.NewDecoder(r.schema, first)}, err
}

// fill makes a set of all cubes.
func fill(r *rows[game.Seen], set *snapshot.Set, bodies []world.Body) error {
	var seen game.Seen
	for i := range bodies {
		seen.See(&bodies[i])
		if err := r.add(set, i, &seen); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshotSender) Send(f *Frame, emit func([]byte)) error {
	if !s.due(f.Tick) {
		return nil
	}
	if err := fill(&s.rows, s.world.Begin(), f.Bodies); err != nil {
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

// ackSize is what an ack takes: the newest snapshot, and which of those before it are held.
const ackSize = 2 + 8

func (s *snapshotSender) Ack(b []byte) error {
	if len(b) != ackSize {
		return fmt.Errorf("ack has %d bytes, want %d", len(b), ackSize)
	}
	return s.encoder.Ack(snapshot.Ack{Newest: binary.LittleEndian.Uint16(b), Window: binary.LittleEndian.Uint64(b[2:])})
}

func (r *snapshotReceiver) Ack(dst []byte) []byte {
	if !r.held {
		return dst
	}
	r.held = false
	a := r.decoder.Ack()
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(dst, a.Newest), a.Window)
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
		if err := r.get(&r.cubes[i], set, i); err != nil {
			return err
		}
	}
	return r.take(at, tick)
}
