// Article: the scheme of the uplink article, with both ends in one process and a link that loses a
// fifth of the calls and acknowledgments. A small client and server do it with packages ringcache
// and rle; then package rpcdelta does it with its codec RLE. Calls leave at once: no preset is set.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/rle"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Move contains the arguments of the call. A frame of it has 6 numbers and 2 discrete components.
type Move struct {
	Location schema.Vec3    `uplink:"resolution=0.1"` // cm
	Rotation schema.Rotator `uplink:"bits=16"`        // degrees
	Buttons  uint32         `uplink:"kind=bits"`
	Weapon   uint32
}

// The components of a frame, and the frames of a ring: more than are sent in a round trip.
const numbers, discrete, ring = 6, 2, 32

// packet is a call on the wire. Sequence numbers start at 1; a baseline of 0 means a full frame.
type packet struct {
	seq, baseline uint16
	delta         []byte
}

type client struct {
	sent        *ringcache.Ring[[]int32]
	next, acked uint16
}

// send returns the packet of the next call: the difference from the acknowledged frame, or a full
// frame if that is no longer in the ring.
func (c *client) send(frame []int32) packet {
	p := packet{seq: c.next, baseline: c.acked}
	base := c.sent.Get(uint64(c.acked))
	if base == nil {
		p.baseline, base = 0, &full
	}
	for i, v := range frame[:numbers] {
		p.delta = binary.AppendVarint(p.delta, int64(v-(*base)[i]))
	}
	xor := make([]byte, 0, 4*discrete)
	for i, v := range frame[numbers:] {
		xor = binary.LittleEndian.AppendUint32(xor, uint32(v^(*base)[numbers+i]))
	}
	p.delta = rle.AppendEncode(p.delta, xor)
	*c.sent.Put(uint64(p.seq)) = slices.Clone(frame)
	c.next++
	return p
}

type server struct{ received *ringcache.Ring[[]int32] }

var (
	full         = make([]int32, numbers+discrete) // the baseline of full frames
	errNoBase    = errors.New("the baseline is not in the ring: the packet counts as lost")
	errMalformed = errors.New("malformed packet")
)

// receive returns the frame of a packet and keeps it as a baseline.
func (s *server) receive(p packet) ([]int32, error) {
	base := &full
	if p.baseline != 0 {
		if base = s.received.Get(uint64(p.baseline)); base == nil {
			return nil, errNoBase
		}
	}
	frame := slices.Clone(*base)
	for i := range frame[:numbers] {
		d, n := binary.Varint(p.delta)
		if n <= 0 {
			return nil, errMalformed
		}
		frame[i] += int32(d)
		p.delta = p.delta[n:]
	}
	xor, err := rle.AppendDecode(nil, p.delta, 4*discrete)
	if err != nil || len(xor) != 4*discrete {
		return nil, errMalformed
	}
	for i := range frame[numbers:] {
		frame[numbers+i] ^= int32(binary.LittleEndian.Uint32(xor[4*i:]))
	}
	*s.received.Put(uint64(p.seq)) = frame
	return frame, nil
}

func main() { run(os.Stdout) }

// must returns v, or ends the program with an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func run(w io.Writer) {
	moves := must(schema.Compile[Move]("Move", 60))
	enc := must(rpcdelta.NewEncoder(moves.Schema(), rpcdelta.EncoderConfig{Codec: rpcdelta.RLE}))
	dec := must(rpcdelta.NewDecoder(moves.Schema(), rpcdelta.DecoderConfig{Codec: rpcdelta.RLE}))
	c, s := &client{sent: ringcache.New[[]int32](ring), next: 1}, &server{ringcache.New[[]int32](ring)}
	frame, link := moves.Schema().NewFrame(), rand.New(rand.NewPCG(1, 2))
	received, bytes, stats := 0, 0, rpcdelta.Stats{}
	for i := range 600 {
		t := float64(i) / 60
		m := Move{
			Location: schema.Vec3{X: 25000 + 300*math.Cos(t), Y: 300 * math.Sin(t)},
			Rotation: schema.Rotator{Yaw: 40 * math.Sin(t)}, Buttons: uint32(i / 100), Weapon: 7,
		}
		must(0, moves.Quantize(frame, &m))
		p := c.send(frame.Ints)
		payload, info, err := enc.AppendFrame(nil, frame)
		must(0, err)
		bytes += 4 + len(p.delta) // with both sequence numbers
		stats.Count(&info)
		if link.Float64() < 0.2 {
			continue // the call is lost
		}
		ints, frames := must(s.receive(p)), must(dec.Decode(payload))
		if slices.Equal(ints, frame.Ints) && slices.Equal(frames[0].Frame.Ints, frame.Ints) {
			received++
		}
		if link.Float64() < 0.2 {
			continue // the acknowledgment is lost
		}
		c.acked = p.seq
		ack, _, err := rpcdelta.ParseAck(dec.AppendAck(nil))
		must(0, err)
		must(0, enc.Ack(ack))
	}
	n := stats.Frames()
	fmt.Fprintf(w, "%d calls sent, %d received and equal\nbits of a call: packed in full %d, this program %d, rpcdelta with RLE %d\n",
		n, received, stats.FullBits/n, 8*uint64(bytes)/n, (stats.HeaderBits+stats.PayloadBits)/n)
}
