package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/lab/internal/worldbench"
)

// Worlds returns the peers for snapshots of worlds. Sample contains snapshots to train them.
func Worlds(sample []*snapshot.Set) []worldbench.Peer {
	return []worldbench.Peer{&zstdWorld{}, &quakeWorld{sample: sample}}
}

// zstdWorld compresses each whole snapshot, for each player. It needs no acks. A component has the
// minimum number of whole bytes for its bounds.
type zstdWorld struct {
	fields  []snapshot.Field
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	plain   []byte
}

func (*zstdWorld) Name() string { return "full, zstd" }

func (z *zstdWorld) Begin(s *snapshot.Schema, _ *snapshot.Set) (err error) {
	z.fields = s.Fields()
	z.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return err
	}
	z.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	return err
}

func (z *zstdWorld) Add(set *snapshot.Set) error {
	z.plain = z.plain[:0]
	for i := range set.Len() {
		o, row := set.Object(i), set.Row(i)
		z.plain = append(binary.LittleEndian.AppendUint16(z.plain, o.ID), o.Generation)
		for _, f := range z.fields {
			for k := range f.N {
				lo, hi := componentBounds(&f, k)
				v := uint32(row[0]) - uint32(lo)
				for range (bits.Len32(uint32(hi)-uint32(lo)) + 7) / 8 {
					z.plain = append(z.plain, byte(v))
					v >>= 8
				}
				row = row[1:]
			}
		}
	}
	return nil
}

func (z *zstdWorld) Join() worldbench.PlayerCoder { return zstdPlayer{z} }

// decode returns the uncompressed snapshot.
func (z *zstdWorld) decode(payload []byte) ([]byte, error) { return z.decoder.DecodeAll(payload, nil) }

type zstdPlayer struct{ *zstdWorld }

func (z zstdPlayer) Append(dst []byte) ([]byte, error) { return z.encoder.EncodeAll(z.plain, dst), nil }

func (zstdPlayer) Ack(uint64, uint64) error { return nil }

// componentBounds returns the bounds of a component of a field.
func componentBounds(f *snapshot.Field, k int) (lo, hi int32) {
	if f.Class == schema.ClassQuat && k == 0 {
		return 0, 3
	}
	return f.Lo, f.Hi
}

// quakeWorld is the delta of Quake 3's snapshots, modeled on ioquake3's SV_EmitPacketEntities and
// MSG_WriteDeltaEntity. It sends each object that differs from the newest acked snapshot, with its
// number and its fields as [quake] codes them. If that snapshot is too old, objects are coded
// against their baselines, the initial state.
//
// Differences from the original, all in the peer's favor. A number has the bits of its bounds, not
// of a float. The Huffman code is trained on the recording, not on Quake. The server stores as many
// snapshots as this project does, not 32. Objects are neither added nor removed.
type quakeWorld struct {
	sample  []*snapshot.Set
	fields  []quakeField // one per component
	initial *snapshot.Set
	sets    [snapshot.Ring]*snapshot.Set
	next    int
	coder   *quakeCoder
	schema  *snapshot.Schema
}

type quakeField struct {
	lo     int32
	bits   uint
	number bool // a float in the original
}

// quakeCoder writes and reads values with the elements of Quake's messages.
type quakeCoder struct{ quake }

// Sizes in bits.
const (
	quakeObject = 16 // number of an object; Quake's has 10, for 1,024 objects
	quakeLast   = 8  // number of the last field that changed
)

// quakeEnd is the number that ends a list of objects.
const quakeEnd = 1<<quakeObject - 1

// trainDistance is the distance in snapshots to the baselines of the training.
const trainDistance = 6

func (*quakeWorld) Name() string { return "quake3" }

func (q *quakeWorld) Begin(s *snapshot.Schema, initial *snapshot.Set) error {
	q.schema, q.initial, q.next = s, s.NewSet(), 0
	q.initial.CopyFrom(initial)
	q.fields = nil
	for _, f := range s.Fields() {
		for k := range f.N {
			lo, hi := componentBounds(&f, k)
			q.fields = append(q.fields, quakeField{lo, uint(bits.Len32(uint32(hi) - uint32(lo))), f.Class == schema.ClassNumber})
		}
	}
	if len(q.fields) >= 1<<quakeLast {
		return fmt.Errorf("quake3: %d components", len(q.fields))
	}
	q.coder = &quakeCoder{quake{counts: slices.Repeat([]int{1}, 256)}}
	for i := trainDistance; i < len(q.sample); i += trainDistance {
		q.write(q.sample[i-trainDistance], q.sample[i])
	}
	q.coder.code, q.coder.counts = newPrefixCode(huffmanLengths(q.coder.counts)), nil
	return nil
}

var errObjects = errors.New("quake3: the objects are not those of the initial state")

func (q *quakeWorld) Add(set *snapshot.Set) error {
	if set.Len() != q.initial.Len() {
		return errObjects
	}
	slot := &q.sets[q.next%len(q.sets)]
	if *slot == nil {
		*slot = q.schema.NewSet()
	}
	(*slot).CopyFrom(set)
	q.next++
	return nil
}

func (q *quakeWorld) Join() worldbench.PlayerCoder { return &quakePlayer{world: q, acked: -1} }

// write writes the objects that differ from base.
func (q *quakeWorld) write(base, cur *snapshot.Set) {
	c := q.coder
	for i := range cur.Len() {
		old, row := base.Row(i), cur.Row(i)
		last := 0
		for k, v := range row {
			if v != old[k] {
				last = k + 1
			}
		}
		if last == 0 {
			continue
		}
		c.write(uint32(cur.Object(i).ID), quakeObject)
		c.write(0, 1) // not removed
		c.write(1, 1) // its fields differ
		c.write(uint32(last), quakeLast)
		for k := range last {
			if c.flag(row[k] != old[k]) {
				q.fields[k].write(c, row[k])
			}
		}
	}
	c.write(quakeEnd, quakeObject)
}

func (f *quakeField) short() bool { return f.number && f.bits > smallBits }

func (f *quakeField) write(c *quakeCoder, v int32) {
	if !c.flag(v != 0) {
		return
	}
	const bias = 1 << (smallBits - 1)
	if f.short() && !c.flag(v < -bias || v >= bias) {
		c.write(uint32(v+bias), smallBits)
		return
	}
	c.write(uint32(v)-uint32(f.lo), f.bits)
}

func (f *quakeField) read(c *quakeCoder) int32 {
	if c.read(1) == 0 {
		return 0
	}
	if f.short() && c.read(1) == 0 {
		return int32(c.read(smallBits)) - 1<<(smallBits-1)
	}
	return int32(c.read(f.bits) + uint32(f.lo))
}

// decode decodes a payload into rows that equal those of its baseline.
func (q *quakeWorld) decode(rows [][]int32, payload []byte) error {
	c := q.coder
	c.r.Reset(payload[1:])
	for {
		id := int(c.read(quakeObject))
		if id == quakeEnd || c.r.Err() != nil {
			return c.r.Err()
		}
		c.read(2)
		last := int(c.read(quakeLast))
		if id >= len(rows) || last > len(q.fields) {
			return malformed("quake3")
		}
		for k := range last {
			if c.read(1) != 0 {
				rows[id][k] = q.fields[k].read(c)
			}
		}
	}
}

// quakePlayer is the server's state of one player.
type quakePlayer struct {
	world *quakeWorld
	acked int // newest snapshot, or -1
}

// Append writes the distance to the baseline, as Quake does, and the objects.
func (p *quakePlayer) Append(dst []byte) ([]byte, error) {
	q, n := p.world, p.world.next-1
	base, distance := q.initial, 0
	if p.acked >= 0 && n-p.acked < len(q.sets) {
		base, distance = q.sets[p.acked%len(q.sets)], n-p.acked
	}
	q.coder.w.Reset(append(dst, byte(distance)))
	q.write(base, q.sets[n%len(q.sets)])
	return q.coder.w.Bytes(), nil
}

func (p *quakePlayer) Ack(newest, _ uint64) error {
	p.acked = max(p.acked, int(newest))
	return nil
}
