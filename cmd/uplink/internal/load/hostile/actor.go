package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/rogue"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

type actor struct {
	kind *kind
	c    *rogue.Client
	rng  *rand.Rand

	schemas  []*schema.Schema // by number of the RPC
	encoders []*rpcdelta.Encoder
	frame    *schema.Frame
	number   uint32 // number of the next segment
	pending  []byte // reliable frame that waits for room; reliable frames must not be skipped
	due      ration // steps that are due
	step     int    // number of the next step

	mu     sync.Mutex
	offers map[string]uint8 // numbers of streams, by codec
	seqs   map[uint8]uint16 // number of the newest message, by stream
	epochs map[uint8]uint8  // epoch, by state stream
	bound  int              // number of bound RPCs
	acks   [][]rpcdelta.Ack // acks by RPC, oldest first
}

func newActor(ctx context.Context, addr string, network transport.Network, t token.Token, k *kind, seed uint64) (*actor, error) {
	var schemas []*schema.Schema
	for n := range bindings {
		typ, err := schema.Compile[move](moveRPC(n), maxHz)
		if err != nil {
			return nil, err
		}
		s := typ.Schema()
		if k.evolved {
			if s, err = evolve(s, seed); err != nil {
				return nil, err
			}
		}
		schemas = append(schemas, s)
	}
	var err error
	a := &actor{
		kind: k, due: ration{rate: k.rate}, rng: rand.New(rand.NewPCG(seed, 0)), schemas: schemas, frame: schemas[0].NewFrame(),
		offers: map[string]uint8{}, seqs: map[uint8]uint16{}, epochs: map[uint8]uint8{}, acks: make([][]rpcdelta.Ack, bindings),
	}
	a.c, err = rogue.Dial(ctx, addr, rogue.Config{Token: t, Network: network, Deaf: k.deaf, Datagram: a.datagram, Message: a.message})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	return a, nil
}

// evolve returns a schema with an additional field that no other client has. A server of all RPCs
// accepts the same number of components in each.
func evolve(s *schema.Schema, seed uint64) (*schema.Schema, error) {
	const components = 3
	more := schema.Field{Name: fmt.Sprint("Evolved", seed), Kind: schema.KindScalar, Count: components, Resolution: 0.001}
	return schema.New(s.RPC(), s.RateHz(), append(slices.Clone(s.Fields()), more))
}

// turn makes the steps that are due. It returns the error that ended the session.
func (a *actor) turn() error {
	for range a.due.take() {
		if a.kind.binds == nothing || a.bind(a.step) {
			a.kind.step(a, a.step)
		}
		a.step++
	}
	return a.c.Err()
}

func (a *actor) message(b []byte) {
	if t, body, err := message.Split(b); err == nil && t == message.Offer {
		if o, err := replication.ParseOffer(body); err == nil {
			a.mu.Lock()
			a.offers[o.Codec] = o.Number
			a.mu.Unlock()
		}
	}
}

func (a *actor) datagram(b []byte) {
	t, body, err := message.Split(b)
	if err != nil {
		return
	}
	if t == message.WithAcks { // no RPC here has a jitter buffer
		acks, msg, err := message.ParseWithAcks(body)
		if err != nil {
			return
		}
		a.datagram(append([]byte{byte(message.Acks)}, acks...))
		a.datagram(msg)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch t {
	case message.Bound:
		if r, err := message.ParseBindAnswer(body); err == nil && r.Reason == message.ReasonNone {
			a.bound++
		}
	case message.Acks:
		for len(body) > 0 {
			ack, rest, err := rpcdelta.ParseAck(body)
			if err != nil {
				return
			}
			if ack.RPC < bindings {
				a.acks[ack.RPC] = append(a.acks[ack.RPC], ack)
			}
			body = rest
		}
	case message.Down:
		a.down(replication.Number(b), b[1:])
	case message.DownFragment:
		if first := b[1:]; len(first) > fragment.HeaderSize && first[2] == 0 {
			a.down(replication.Number(b), first[fragment.HeaderSize:])
		}
	default:
	}
}

// down records the sequence number of a message of a world. Both codecs store it in the same place
// of the header.
func (a *actor) down(n uint8, b []byte) {
	if snapshots, ok := a.offers[replication.SnapshotCodec]; ok && n == snapshots {
		_, size := binary.Varint(b)
		b = b[max(size, 0):]
	}
	if len(b) < 4 {
		return
	}
	const distanceBits, shortBits = 6, 10
	v, last := binary.LittleEndian.Uint16(b), a.seqs[n]
	seq := last&^(1<<shortBits-1) | v>>distanceBits
	if v&(1<<distanceBits-1) == 0 { // its high bits and the epoch follow
		seq = v>>distanceBits | uint16(b[2])<<shortBits
		a.epochs[n] = b[3]
	} else if int16(seq-last) < -1<<(shortBits-1) {
		seq += 1 << shortBits
	}
	a.seqs[n] = seq
}

// stream returns the number of the stream of a codec, its newest sequence number, and its epoch.
func (a *actor) stream(codec string) (n uint8, seq uint16, epoch uint8) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = a.offers[codec]
	return n, a.seqs[n], a.epochs[n]
}

// Bindings of one client: all RPCs of the server, at the highest rate, called twice as often.
const (
	bindings = 8
	maxHz    = 250
	slack    = 2
	fullRate = bindings * maxHz * slack // payloads per second
)

func (a *actor) request(n int) message.BindRequest {
	s := a.schemas[n]
	r := message.BindRequest{
		RPC: uint8(n), Name: moveRPC(n), Fingerprint: s.Fingerprint(), Fields: message.FieldHashes(s), RateHz: maxHz, Ring: rpcdelta.DefaultRing,
		Codec: rpcdelta.Adaptive.String(), Frames: rpcdelta.MaxHeld, Prior: prior.Generic().Hash(), Reliable: a.kind.binds == reliable,
		PerTick: s.PerTick(),
	}
	if last := len(s.Fields()) - 1; a.kind.evolved {
		r.Described = []message.Described{{Field: last, Description: s.Fields()[last].String()}}
	}
	return r
}

// bind reports whether all RPCs are bound. It is called until they are.
func (a *actor) bind(i int) bool {
	a.mu.Lock()
	bound := a.bound
	a.mu.Unlock()
	if len(a.encoders) == bindings {
		return true
	}
	if bound >= bindings {
		for n := range bindings {
			e, err := rpcdelta.NewEncoder(a.schemas[n], rpcdelta.EncoderConfig{
				Codec: rpcdelta.Adaptive, RPC: n, Redundancy: rpcdelta.MaxRedundancy, RedundancyBytes: 900, Reliable: a.kind.binds == reliable,
			})
			if err != nil {
				panic(err) // would fail in every call
			}
			a.encoders = append(a.encoders, e)
		}
		return true
	}
	if i%int(a.kind.rate/4) == 0 { // as often as clients request
		a.mu.Lock()
		a.bound = 0
		a.mu.Unlock()
		for n := range bindings {
			r := a.request(n)
			a.ask(&r)
		}
	}
	return false
}

func (a *actor) ask(r *message.BindRequest) {
	b, err := r.Append(nil)
	if err != nil {
		panic(err) // would fail in every call
	}
	_ = a.c.Send(b) // the end of the session is detected elsewhere
}

func (a *actor) reply(n uint8, r replication.Answer) {
	_ = a.c.SendReliable(replication.AppendReply(nil, n, r))
}

func (a *actor) rubbish(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.rng.Uint32())
	}
	return b
}

// encode returns a payload of RPC n with unpredictable values, or nil if it cannot be sent.
func (a *actor) encode(n int) []byte {
	for i := range a.frame.Ints {
		a.frame.Ints[i] = a.rng.Int32N(1 << 12)
	}
	b, _, err := a.encoders[n].AppendFrame(nil, a.frame)
	if err != nil {
		return nil
	}
	return b
}
