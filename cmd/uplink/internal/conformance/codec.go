package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/gopeer"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// interval is the virtual time between two frames.
const interval = time.Second / 60

// link returns a link with losses, jitter and duplicates.
func (t *tester) link() (*simnet.Link, error) {
	return simnet.NewLink(simnet.Config{
		Delay: time.Duration(t.rng.IntN(120)) * time.Millisecond, Jitter: time.Duration(t.rng.IntN(12)) * time.Millisecond,
		Loss: []float64{0, 0.02, 0.1, 0.2}[t.rng.IntN(4)], Duplicate: 0.02, Seed: t.rng.Uint64(),
	})
}

// wires are the two directions between an encoder and a decoder, in virtual time.
type wires struct {
	now      time.Duration
	up, down *simnet.Queue[[]byte]
}

func (t *tester) wires() (*wires, error) {
	up, err := t.link()
	if err != nil {
		return nil, err
	}
	down, err := t.link()
	return &wires{up: simnet.NewQueue[[]byte](up), down: simnet.NewQueue[[]byte](down)}, err
}

// setting is the configuration of one sequence.
type setting struct {
	schema            *schema.Schema
	codec             rpcdelta.Codec
	rpc, ring, copies int
}

func (t *tester) setting(n int, codec rpcdelta.Codec) setting {
	c := setting{schema: t.randomSchema(n), codec: codec, rpc: t.rng.IntN(rpcdelta.MaxRPC+1) >> t.rng.IntN(8), ring: []int{64, 64, 256, 16}[t.rng.IntN(4)]}
	if codec == rpcdelta.Adaptive {
		c.copies = t.rng.IntN(3)
	}
	return c
}

func (c *setting) words() []string {
	return []string{c.codec.String(), strconv.Itoa(c.rpc), strconv.Itoa(c.ring)}
}

func (c *setting) decoder() (*rpcdelta.Decoder, error) {
	return rpcdelta.NewDecoder(c.schema, rpcdelta.DecoderConfig{Codec: c.codec, RPC: c.rpc, Ring: c.ring, PeerRing: c.ring})
}

func (c *setting) encoder() (*rpcdelta.Encoder, error) {
	copies := c.copies
	if copies == 0 {
		copies = rpcdelta.RedundancyOff
	}
	return rpcdelta.NewEncoder(c.schema, rpcdelta.EncoderConfig{Codec: c.codec, RPC: c.rpc, Ring: c.ring, PeerRing: c.ring, Redundancy: copies})
}

// motion returns a function that makes the frames of a sequence. Most differ little from the
// previous one.
func (t *tester) motion(s *schema.Schema) func() *schema.Frame {
	f := s.NewFrame()
	t.pick.Frame(s, f, s.NewFrame())
	return func() *schema.Frame {
		if t.rng.IntN(20) == 0 {
			t.pick.Frame(s, f, f)
		} else {
			t.pick.Walk(s, f)
		}
		out := s.NewFrame()
		out.CopyFrom(f)
		return out
	}
}

// encoderTest tests the peer's encoder with a decoder of this implementation.
func encoderTest(name string) func(context.Context, *tester) error {
	return func(ctx context.Context, t *tester) error {
		codec, err := rpcdelta.ParseCodec(name)
		if err != nil {
			return err
		}
		return t.each(ctx, "sequence", func(n int) error { return t.encodes(t.setting(n, codec)) })
	}
}

func (t *tester) encodes(c setting) error {
	d, err := c.decoder()
	if err != nil {
		return err
	}
	w, err := t.wires()
	if err != nil {
		return err
	}
	s, err := t.schema(c.schema)
	if err != nil {
		return err
	}
	h := t.handle()
	if _, err := t.must(append(append([]string{"encoder", h, s}, c.words()...), strconv.Itoa(c.copies))...); err != nil {
		return err
	}
	next, sent := t.motion(c.schema), []*schema.Frame(nil)
	for i := range t.options.Frames {
		f := next()
		word, err := t.must("encode", h, protocol.Frame(f))
		if err != nil {
			return err
		}
		payload, err := protocol.ParseBytes(word)
		if !t.check(err == nil, "frame %d: %v", i, err) {
			return errGiveUp
		}
		sent = append(sent, f)
		w.up.Push(w.now, payload, len(payload))
		w.now += interval
		if err := t.arrive(w, d, sent); err != nil {
			return err
		}
		if i == t.options.Frames/2 {
			d.AskReset() // the following acks request the reset
		}
		if d.AckDue() {
			w.down.Push(w.now, d.AppendAck(nil), 0)
		}
		if err := t.deliverAcks(w, h, c, i); err != nil {
			return err
		}
	}
	if a, _, err := rpcdelta.ParseAck(d.AppendAck(nil)); err != nil || a.ResetReason != nil {
		t.check(false, "a reset that acks have requested since frame %d has not taken place: %v", t.options.Frames/2, err)
	}
	_, err = t.must("free", h)
	return err
}

// arrive decodes the payloads that have arrived by now and compares them with the frames sent.
func (t *tester) arrive(w *wires, d *rpcdelta.Decoder, sent []*schema.Frame) error {
	for {
		payload, _, ok := w.up.Pop(w.now)
		if !ok {
			return nil
		}
		all, err := d.Decode(payload)
		if errors.Is(err, rpcdelta.ErrLate) || errors.Is(err, rpcdelta.ErrDuplicate) {
			continue
		}
		if !t.check(err == nil, "payload %x of frame %d or before: %v", payload, len(sent)-1, err) {
			return errGiveUp
		}
		for _, got := range all {
			ok := got.Seq < uint64(len(sent)) && got.Frame.Equal(sent[got.Seq])
			if !t.check(ok, "frame %d is decoded as %s", got.Seq, protocol.Frame(got.Frame)) {
				return errGiveUp
			}
		}
	}
}

// deliverAcks passes the acks that have arrived by now to the encoder, and sometimes an impossible
// one.
func (t *tester) deliverAcks(w *wires, h string, c setting, newest int) error {
	for {
		b, _, ok := w.down.Pop(w.now)
		if !ok {
			break
		}
		if _, err := t.must("ack", h, protocol.Bytes(b)); err != nil {
			return err
		}
	}
	if t.rng.IntN(40) != 0 {
		return nil
	}
	future := rpcdelta.Ack{RPC: uint8(c.rpc), Epoch: uint8(t.rng.IntN(8)), Seq: uint16(newest + 100 + t.rng.IntN(300)), Window: 1<<63 - 1, Len: 63}
	_, dropped, err := t.ask("ack", h, protocol.Bytes(future.Append(nil)))
	t.check(dropped || err != nil, "an ack of frames that were never sent, %x, is accepted", future.Append(nil))
	return err
}

// decoderTest tests the peer's decoder with an encoder of this implementation. A decoder of this
// implementation receives the same payloads.
func decoderTest(name string) func(context.Context, *tester) error {
	return func(ctx context.Context, t *tester) error {
		codec, err := rpcdelta.ParseCodec(name)
		if err != nil {
			return err
		}
		return t.each(ctx, "sequence", func(n int) error { return t.decodes(t.setting(n, codec)) })
	}
}

func (t *tester) decodes(c setting) error {
	e, err := c.encoder()
	if err != nil {
		return err
	}
	d, err := c.decoder()
	if err != nil {
		return err
	}
	w, err := t.wires()
	if err != nil {
		return err
	}
	s, err := t.schema(c.schema)
	if err != nil {
		return err
	}
	h := t.handle()
	if _, err := t.must(append([]string{"decoder", h, s}, c.words()...)...); err != nil {
		return err
	}
	next := t.motion(c.schema)
	for i := range t.options.Frames {
		payload, _, err := e.AppendFrame(nil, next())
		if err != nil && !errors.Is(err, rpcdelta.ErrTooLarge) {
			return err
		}
		w.up.Push(w.now, payload, len(payload))
		w.now += interval
		for {
			payload, _, ok := w.up.Pop(w.now)
			if !ok {
				break
			}
			if t.rng.IntN(10) == 0 {
				if err := t.compare(d, h, t.damaged(payload)); err != nil {
					return err
				}
			}
			if err := t.compare(d, h, payload); err != nil {
				return err
			}
		}
		if i%2 == 0 {
			if err := t.compareAcks(d, h, w); err != nil {
				return err
			}
		}
		for {
			b, _, ok := w.down.Pop(w.now)
			if !ok {
				break
			}
			a, _, err := rpcdelta.ParseAck(b)
			if err != nil {
				return err
			}
			// A damaged payload can lead the decoder to ack frames that were never sent.
			if err := e.Ack(a); err != nil && !errors.Is(err, rpcdelta.ErrAck) {
				return err
			}
		}
	}
	_, err = t.must("free", h)
	return err
}

// compare decodes a payload at both ends.
func (t *tester) compare(d *rpcdelta.Decoder, h string, payload []byte) error {
	all, reason := d.Decode(payload)
	want, wantDrop := gopeer.Deliveries(all), false
	if reason != nil {
		want, wantDrop = protocol.Reason(reason), true
	}
	got, dropped, err := t.ask("decode", h, protocol.Bytes(payload))
	if err == nil && !t.check(got == want && dropped == wantDrop, "payload %x: %s, want %s", payload, verdict(dropped, got), verdict(wantDrop, want)) {
		err = errGiveUp
	}
	return err
}

func verdict(dropped bool, result string) string {
	if dropped {
		return "drop " + result
	}
	return strings.TrimSpace(fmt.Sprintf("ok %.200s", result))
}

// compareAcks compares the acks of both ends, and sends one to the encoder.
func (t *tester) compareAcks(d *rpcdelta.Decoder, h string, w *wires) error {
	want := d.AppendAck(nil)
	got, err := t.must("acks", h)
	if err == nil && !t.check(got == protocol.Bytes(want), "ack %s, want %x", got, want) {
		err = errGiveUp
	}
	w.down.Push(w.now, want, 0)
	return err
}
