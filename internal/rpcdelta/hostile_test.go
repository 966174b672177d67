package rpcdelta

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
)

// TestImpossibleAcks verifies that acks of frames that were never sent and of epochs that were
// never opened are errors without effect.
func TestImpossibleAcks(t *testing.T) { forVariants(t, checkImpossibleAcks) }

func checkImpossibleAcks(t *testing.T, v variant) {
	p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{})
	if err := p.enc.Ack(Ack{}); !errors.Is(err, ErrAck) {
		t.Errorf("an ack before the first frame: %v", err)
	}
	for range 10 {
		p.exchange(t)
	}
	p.send(t) // 10 is under way
	for _, c := range []struct {
		a        Ack
		rejected bool
	}{
		{Ack{Seq: 11}, true},
		{Ack{Seq: 0x8000, Whole: true}, true},
		{Ack{Seq: 0xffff, Whole: true}, true},
		{Ack{Seq: 0x3ff}, true},
		{Ack{Seq: 10, Epoch: 1}, true},
		{Ack{Seq: 10, Epoch: 1, ResetReason: ErrDesync}, true},
		{Ack{Seq: 10, Epoch: 7}, false}, // of the epoch before: old, no news
		{Ack{Seq: 9}, false},            // known
		{Ack{Seq: 3, Len: 3}, false},    // older
		{Ack{None: true}, false},
	} {
		before := *p.enc
		if err := p.enc.Ack(c.a); errors.Is(err, ErrAck) != c.rejected {
			t.Errorf("%+v: %v", c.a, err)
		}
		if p.enc.base != before.base || p.enc.epoch != before.epoch || p.enc.resolved != before.resolved || !p.enc.hasBase {
			t.Errorf("%+v changes the encoder", c.a)
		}
	}
}

// TestOldEpochAcks verifies that an ack that was in flight during two resets is ignored without an
// error.
func TestOldEpochAcks(t *testing.T) { forVariants(t, checkOldEpochAcks) }

func checkOldEpochAcks(t *testing.T, v variant) {
	p := newPair(t, smallSchema(t), v.encoder(EncoderConfig{}), DecoderConfig{})
	p.exchange(t)
	old := p.acknowledge(t)
	for epoch := range 3 {
		p.dec.resetReason = ErrDesync
		p.exchange(t)
		p.exchange(t)
		if p.enc.epoch != uint8(epoch+1) || p.dec.epoch != p.enc.epoch {
			t.Fatalf("epochs %d and %d", p.enc.epoch, p.dec.epoch)
		}
		if err := p.enc.Ack(old); err != nil {
			t.Errorf("an ack of %d epochs ago: %v", epoch+1, err)
		}
	}
}

// TestHostileAcks verifies that genuine acks repair the stream after forged ones. With the adaptive
// codec, the next hash detects the desync; with rle, no wrong frame is delivered.
func TestHostileAcks(t *testing.T) { forVariants(t, checkHostileAcks) }

func checkHostileAcks(t *testing.T, v variant) {
	for seed := range uint64(20 / thin(7)) {
		x := newStream(t, smallSchema(t), v.stream(streamConfig{
			Seed: seed, Smooth: true, Up: linkConfig{Delay: 4, Loss: 0.1}, Down: linkConfig{Delay: 4, Loss: 0.1},
		}))
		rng := rand.New(rand.NewPCG(seed, 9))
		x.expected, x.loose = []error{ErrBaselineMissing, ErrAck}, true // the epochs may differ
		if v.codec == Adaptive {                                        // after a false ack, the learned states differ
			x.expected = append(x.expected, ErrDesync, ErrMalformed)
		}
		for range 400 {
			x.run(t, 1)
			b := make([]byte, rng.IntN(16))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if a, _, err := ParseAck(b); err == nil {
				if rng.IntN(2) == 0 {
					a.Seq, a.Epoch = uint16(x.enc.next)-uint16(rng.IntN(80)), x.enc.epoch
				}
				_ = x.enc.Ack(a)
			}
		}
		x.run(t, 200)
		x.expected, x.loose = nil, false
		if x.wrong > 0 && v.codec != Adaptive {
			t.Errorf("seed %d: %d wrong frames", seed, x.wrong)
		}
		if n := x.deltasIn(t, 100); n < 95 {
			t.Errorf("seed %d: %d deltas of 100 frames", seed, n)
		}
	}
}

// TestHostilePayloads verifies that corrupted and random payloads between genuine ones never cause
// a panic, that delivered frames are in range, and that the parts of their payloads add up.
func TestHostilePayloads(t *testing.T) {
	for seed := range uint64(300 / thin(5)) {
		rng := rand.New(rand.NewPCG(seed, 0))
		pick := schematest.FromRand(rng)
		s := pick.Schema()
		p := newPair(t, s, EncoderConfig{RPC: rng.IntN(10), Codec: Codecs()[seed%2], Redundancy: int(seed%9) - 1}, DecoderConfig{RPC: 0, Ring: 2 + rng.IntN(20), DeliverLate: seed%4 < 2, Reliable: seed%7 == 0})
		p.dec.cfg.RPC = p.enc.cfg.RPC
		measured, delivered := NewProfile(s), 0
		p.dec.Measure(measured)
		var old [][]byte
		for range 100 {
			pick.Frame(s, p.frame, p.frame)
			p.send(t)
			b := p.payload
			switch rng.IntN(5) {
			case 0:
				b = slices.Clone(b)
				b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
			case 1:
				b = b[:rng.IntN(len(b)+1)]
			case 2:
				b = make([]byte, rng.IntN(40))
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
			case 3:
				if len(old) > 0 {
					b = old[rng.IntN(len(old))]
				}
			}
			old = append(old, slices.Clone(b))
			before := slices.Clone(b)
			out, err := p.dec.Decode(b)
			if !slices.Equal(b, before) {
				t.Fatalf("seed %d: the payload was written to", seed)
			}
			if err != nil && len(out) != 0 || err == nil && (len(out) == 0 || len(out) > MaxFrames) {
				t.Fatalf("seed %d: %d frames, %v", seed, len(out), err)
			}
			reasons := []error{nil, ErrLate, ErrDuplicate, ErrBaselineMissing, ErrDesync, ErrMalformed}
			if !slices.ContainsFunc(reasons, func(r error) bool { return errors.Is(err, r) }) {
				t.Fatalf("seed %d: %v is no reason", seed, err)
			}
			for _, d := range out {
				must(t, s.Check(d.Frame))
			}
			if delivered += len(out); measured.Frames != uint64(delivered) {
				t.Fatalf("seed %d: %d frames are measured of %d", seed, measured.Frames, delivered)
			}
			checkSums(t, measured)
			if a, rest, err := ParseAck(p.dec.AppendAck(nil)); err != nil || len(rest) != 0 {
				t.Fatalf("seed %d: ack %+v, %v", seed, a, err)
			} else {
				_ = p.enc.Ack(a)
			}
		}
	}
}

// FuzzDecode passes payloads to a decoder that has received the first payloads of a recorded
// session: the input has the number of the session, the number of these payloads, and entries. What
// is delivered is in range and in order.
func FuzzDecode(f *testing.F) {
	const history = 16
	type calls struct {
		head     sessionHead
		schema   *schema.Schema
		codec    Codec
		payloads [][]byte
	}
	var all []calls
	for _, name := range []string{"rle_kinds", "adaptive_kinds", "adaptive"} {
		var c calls
		file, err := os.Open(filepath.Join(sessionDir, name+".jsonl"))
		must(f, err)
		lines := json.NewDecoder(file)
		must(f, lines.Decode(&c.head))
		c.schema, err = schema.Parse(c.head.Schema)
		must(f, err)
		c.codec, err = ParseCodec(c.head.Codec)
		must(f, err)
		for len(c.payloads) < history {
			var s sessionStep
			must(f, lines.Decode(&s))
			if s.Payload != nil {
				payload, err := hex.DecodeString(*s.Payload)
				must(f, err)
				c.payloads = append(c.payloads, payload)
			}
		}
		must(f, file.Close())
		all = append(all, c)
	}
	x := corpus.Target{Parser: "frame", Inputs: 20_000, Check: func(t testing.TB, in []byte) {
		if len(in) < 2 {
			return
		}
		c := &all[int(in[0])%len(all)]
		dec, err := NewDecoder(c.schema, DecoderConfig{RPC: c.head.RPC, Codec: c.codec, Ring: c.head.PeerRing, PeerRing: c.head.Ring})
		must(t, err)
		for _, p := range c.payloads[:int(in[1])%(history+1)] {
			_, _ = dec.Decode(p)
		}
		for payload := range entries.All(in[2:]) {
			out, err := dec.Decode(payload)
			if (err == nil) != (len(out) > 0) || len(out) > MaxFrames {
				t.Fatalf("%d frames, %v", len(out), err)
			}
			for i, d := range out {
				must(t, c.schema.Check(d.Frame))
				if i > 0 && d.Seq <= out[i-1].Seq {
					t.Fatalf("frame %d after %d", d.Seq, out[i-1].Seq)
				}
			}
			if _, rest, err := ParseAck(dec.AppendAck(nil)); err != nil || len(rest) > 0 {
				t.Fatalf("ack: %v, %d bytes more", err, len(rest))
			}
		}
	}, Results: func(t testing.TB, in []byte) (line string) {
		if len(in) < 2 {
			return ""
		}
		c := &all[int(in[0])%len(all)]
		dec, err := NewDecoder(c.schema, DecoderConfig{RPC: c.head.RPC, Codec: c.codec, Ring: c.head.PeerRing, PeerRing: c.head.Ring})
		must(t, err)
		for _, p := range c.payloads[:int(in[1])%(history+1)] {
			_, _ = dec.Decode(p)
		}
		for payload := range entries.All(in[2:]) {
			var h corpus.Hash
			out, err := dec.Decode(payload)
			for _, d := range out {
				h.Add(int32(d.Seq))
				h.Add(d.Frame.Ints...)
				for _, b := range d.Frame.Bytes {
					h.Add(int32(len(b)))
					for _, x := range b {
						h.Add(int32(x))
					}
				}
			}
			line += cmp.Or(dropWord(err), fmt.Sprintf("%016x", uint64(h))) + " "
		}
		return line
	}}
	x.Run(f)
}

// dropWord returns the word for the reason of a dropped payload in results, empty if there is none.
func dropWord(err error) string {
	for word, target := range map[string]error{
		"late": ErrLate, "duplicate": ErrDuplicate, "missing": ErrBaselineMissing, "desync": ErrDesync, "malformed": ErrMalformed,
	} {
		if errors.Is(err, target) {
			return word
		}
	}
	return ""
}
