package replication

import (
	"fmt"

	"github.com/uplink-rpc/uplink/snapshot"
)

// SnapshotDecoder decodes the messages of a world of snapshots at a client.
type SnapshotDecoder struct {
	schema  *snapshot.Schema
	initial *snapshot.Set // the client's own, or the one received last
	hash    uint64        // of initial
	dec     *snapshot.Decoder
	ticks   Ticks
}

// NewSnapshotDecoder returns a decoder for a client that knows the initial state initial.
func NewSnapshotDecoder(s *snapshot.Schema, initial *snapshot.Set) SnapshotDecoder {
	return SnapshotDecoder{schema: s, initial: initial, hash: Hash(initial)}
}

// Knows implements [Receiver].
func (d *SnapshotDecoder) Knows(hash uint64) bool { return d.hash == hash }

// Begin prepares the first message of a stream, as [Receiver] requires.
func (d *SnapshotDecoder) Begin(o *Offer, initial []byte) error {
	if initial != nil {
		set, err := parseInitial(d.schema, initial)
		if err == nil && Hash(set) != o.Hash {
			err = fmt.Errorf("%w: the initial state differs from the offered one", snapshot.ErrMalformed)
		}
		if err != nil {
			return err
		}
		d.initial, d.hash = set, o.Hash
	}
	from := d.initial
	if o.Initial == 0 {
		from = nil
	}
	d.dec, d.ticks = snapshot.NewDecoder(d.schema, from), Ticks{}
	return nil
}

// Decode decodes a message. Its set is valid as long as that of [snapshot.Decoder.Decode].
func (d *SnapshotDecoder) Decode(message []byte) (tick uint64, set *snapshot.Set, err error) {
	difference, payload, err := parseTick(message)
	if err != nil {
		return 0, nil, err
	}
	info, set, err := d.dec.Decode(payload)
	if err != nil {
		return 0, nil, err
	}
	tick, err = d.ticks.resolve(info.Seq, info.Baseline, difference)
	return tick, set, err
}

// AppendAck implements [Receiver].
func (d *SnapshotDecoder) AppendAck(dst []byte) []byte {
	a := d.dec.Ack()
	return a.Append(dst)
}

// Memory returns the size of the decoded snapshots that are kept, in bytes.
func (d *SnapshotDecoder) Memory() int {
	if d.dec == nil {
		return 0
	}
	return d.dec.Memory()
}
