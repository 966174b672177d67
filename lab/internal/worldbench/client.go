package worldbench

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// client is a simulated client.
type client struct {
	link
	behavior behavior
	decoding *decoding // nil: the client does not decode received messages
	count    int       // number of datagrams in the tick
	bytes    int       // bytes of payloads
	messages int
	log      [snapshot.Ring]transit // sent snapshots, by tick
	ack      []byte                 // ack of the tick, with the number of the stream; empty: none
}

// decoding is the state of a client that decodes.
type decoding struct {
	decoder   *replication.SnapshotDecoder
	assembler *fragment.Assembler
	transit   [maxRTT + 1][][]byte // datagrams in flight, by tick
	bad       int                  // number of messages that could not be decoded, or were decoded to a wrong world
}

// datagram records a datagram that the server sends at a tick.
func (c *client) datagram(tick int, b []byte) error {
	content := b[1:]
	if b[0]&^(replication.MaxReplicas-1) == byte(message.DownFragment) {
		content = content[fragment.HeaderSize:]
	}
	c.bytes += len(content)
	n := c.at(tick).snapshot
	if c.count == 0 {
		_, size := binary.Varint(content) // difference of the ticks
		if size <= 0 || len(content) < size+2 {
			return fmt.Errorf("worldbench: no snapshot in %x", b)
		}
		c.messages++
		c.bytes -= size
		n = seq.Nearest(uint64(binary.LittleEndian.Uint16(content[size:])>>6), 10, uint64(tick+1))
	}
	c.send(tick, n, c.count)
	c.log[tick%len(c.log)] = transit{sent: true, snapshot: n}
	c.count++
	if c.decoding != nil {
		d := &c.decoding.transit[tick%len(c.decoding.transit)]
		*d = append(*d, append([]byte(nil), b...))
	}
	return nil
}

// begin begins a tick.
func (c *client) begin(tick int) {
	c.link.begin(tick)
	c.log[tick%len(c.log)] = transit{}
	c.count = 0
	if c.decoding != nil {
		d := &c.decoding.transit[tick%len(c.decoding.transit)]
		*d = (*d)[:0]
	}
}

// reply receives the messages that arrive until a tick and prepares the ack of the tick. sets
// contains the sets of the newest ticks, by tick.
func (c *client) reply(tick int, scene Scene, sets *[snapshot.Ring]*snapshot.Set) {
	c.ack = c.ack[:0]
	t, ok := c.arrives(tick)
	ok = ok && !c.behavior.deaf(tick)
	if ok {
		c.receive(t.snapshot)
	}
	a := snapshot.Ack{Newest: uint16(c.newest), Window: c.window}
	switch {
	case c.behavior.ack != nil:
		if a, ok = c.behavior.ack(c, tick); ok {
			c.ack = a.Append(append(c.ack, 0))
		}
	case !ok:
	case c.decoding != nil:
		c.decoding.decode(c.decoding.transit[(tick-c.rtt)%len(c.decoding.transit)], scene, sets)
		if !c.lost(tick, ackLoss) {
			c.ack = c.decoding.decoder.AppendAck(append(c.ack, 0))
		}
	case !c.lost(tick, ackLoss):
		c.ack = a.Append(append(c.ack, 0))
	}
}

// decode decodes the message in datagrams and compares it with the world.
func (d *decoding) decode(datagrams [][]byte, scene Scene, sets *[snapshot.Ring]*snapshot.Set) {
	message := datagrams[0][1:]
	if len(datagrams) > 1 {
		for _, b := range datagrams {
			var err error
			if message, err = d.assembler.Add(b[1:]); err != nil {
				d.bad++
				return
			}
		}
	}
	tick, set, err := d.decoder.Decode(message)
	if err != nil || !scene.Correct(set, sets[tick%snapshot.Ring], int(tick)) {
		d.bad++
	}
}
