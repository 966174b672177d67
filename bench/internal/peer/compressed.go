package peer

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
)

// compressor is a compressor of bytes, trained or not.
type compressor interface {
	compress(dst, src []byte) ([]byte, error)
	// expand appends what was compressed to dst, which has room for it.
	expand(dst, src []byte) ([]byte, error)
}

// compressed is a compressor on the differences of frames.
type compressed struct {
	record
	compressor
	room []byte
	most int // bytes of a record
}

// onDifferences makes a peer of a compressor that records are given to train with.
func onDifferences(create func(records [][]byte) (compressor, error)) func(*schema.Schema, Form, []Sample) (Peer, error) {
	return func(s *schema.Schema, form Form, samples []Sample) (Peer, error) {
		c := &compressed{record: record{newLayout(s), form}}
		c.most = 5 * len(c.components)
		for i := range c.fields {
			c.most += 3 + c.fields[i].most
		}
		records := c.recordsOf(samples)
		var err error
		c.compressor, err = create(records)
		return c, err
	}
}

func (r *record) recordsOf(samples []Sample) [][]byte {
	records := make([][]byte, len(samples))
	for i, s := range samples {
		records[i] = r.append(nil, s.Base, s.Frame)
	}
	return records
}

func (c *compressed) Append(dst []byte, base *schema.Frame, rows []schema.Frame) ([]byte, error) {
	c.room = c.append(c.room[:0], base, &rows[0])
	return c.compress(dst, c.room)
}

func (c *compressed) Decode(rows []schema.Frame, base *schema.Frame, payload []byte) (err error) {
	if cap(c.room) < c.most {
		c.room = make([]byte, 0, c.most)
	}
	if c.room, err = c.expand(c.room[:0], payload); err != nil {
		return fmt.Errorf("compressed: %w", err)
	}
	if !c.parse(&rows[0], base, c.room) {
		return malformed(string(c.form))
	}
	return nil
}

// newest is the last bytes of all records.
func newest(records [][]byte, most int) []byte {
	all := slices.Concat(records...)
	return all[max(0, len(all)-most):]
}
