//go:build native

package differential

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

var (
	frames = flag.Int("frames", 200_000, "number of frames to play in each direction")
	seed   = flag.Uint64("seed", 1, "seed of the first session")
)

// encoder and decoder are ends of either implementation.
type encoder interface {
	encode(f *schema.Frame, to []byte) ([]byte, error)
	ack(b []byte) error
}

type decoder interface {
	decode(payload []byte, f func(seq uint64, is func(*schema.Frame) bool)) error
	ack() []byte
}

type goEncoder struct{ *rpcdelta.Encoder }

func (e goEncoder) encode(f *schema.Frame, to []byte) ([]byte, error) {
	b, _, err := e.AppendFrame(to[:0], f)
	return b, err
}

func (e goEncoder) ack(b []byte) error {
	a, _, err := rpcdelta.ParseAck(b)
	if err != nil {
		return err
	}
	return e.Ack(a)
}

type goDecoder struct{ *rpcdelta.Decoder }

func (d goDecoder) decode(payload []byte, f func(uint64, func(*schema.Frame) bool)) error {
	got, err := d.Decode(payload)
	for i := range got {
		f(got[i].Seq, got[i].Frame.Equal)
	}
	return err
}

func (d goDecoder) ack() []byte { return d.AppendAck(nil) }

// session is one RPC over a link that loses, delays and reorders.
type session struct {
	rng        *rand.Rand
	loss       float64
	sent       []schema.Frame // by sequence, modulo their number
	mismatches int
	delivered  int
}

type flight struct {
	at      int
	payload []byte
}

// play sends n frames from next, and returns the payloads if keep is set.
func (s *session) play(t *testing.T, e encoder, d decoder, n int, next func(*schema.Frame)) {
	var up, down []flight
	buf := make([]byte, 1<<16)
	deliver := func(list *[]flight, now int, f func([]byte)) {
		rest := (*list)[:0]
		for _, p := range *list {
			if p.at > now {
				rest = append(rest, p)
				continue
			}
			f(p.payload)
		}
		*list = rest
	}
	launch := func(list *[]flight, now int, b []byte) {
		if s.rng.Float64() >= s.loss {
			*list = append(*list, flight{now + 1 + s.rng.IntN(6), append([]byte(nil), b...)})
		}
	}
	for i := range n {
		f := &s.sent[i%len(s.sent)]
		next(f)
		payload, err := e.encode(f, buf)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		launch(&up, i, payload)
		deliver(&up, i, func(b []byte) {
			_ = d.decode(b, func(seq uint64, is func(*schema.Frame) bool) {
				s.delivered++
				if !is(&s.sent[seq%uint64(len(s.sent))]) {
					s.mismatches++
				}
			})
		})
		if i%3 == 0 {
			launch(&down, i, d.ack())
		}
		deliver(&down, i, func(b []byte) {
			if err := e.ack(b); err != nil {
				t.Fatalf("frame %d: ack %x: %v", i, b, err)
			}
		})
	}
}

// sources returns the frames of a session: of a random schema, or a recording.
func source(t *testing.T, rng *rand.Rand, recordings []*trace.Trace) (*schema.Schema, func(*schema.Frame)) {
	if rng.IntN(3) == 0 {
		r, at := recordings[rng.IntN(len(recordings))], 0
		return r.Schema, func(f *schema.Frame) {
			f.CopyFrom(r.At(at % len(r.Frames)))
			at++
		}
	}
	pick := schematest.FromRand(rng)
	s := pick.Schema()
	now := s.NewFrame()
	pick.Frame(s, now, now)
	return s, func(f *schema.Frame) {
		if rng.IntN(50) == 0 {
			pick.Frame(s, now, now)
		} else {
			pick.Walk(s, now)
		}
		f.CopyFrom(now)
	}
}

func load(t *testing.T) (out []*trace.Trace) {
	paths, err := filepath.Glob("../../../testdata/traces/*.csv.gz")
	uplinktest.Must(t, err)
	for _, path := range paths {
		r, err := trace.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestDifferential plays sessions from Go to the library and back, over the recordings and random
// schemas, with 0 to 20 % loss.
func TestDifferential(t *testing.T) {
	recordings := load(t)
	played, delivered, mismatches, started := [2]int{}, 0, 0, time.Now()
	for n := *seed; played[0] < *frames; n++ {
		for direction := range 2 {
			rng := rand.New(rand.NewPCG(n, uint64(direction)))
			codec := rpcdelta.Adaptive
			if rng.IntN(3) == 0 {
				codec = rpcdelta.RLE
			}
			rpc, ring, copies := rng.IntN(12), []int{8, 64, 256}[rng.IntN(3)], 0
			if codec == rpcdelta.Adaptive {
				copies = rng.IntN(3)
			}
			s := &session{rng: rng, loss: rng.Float64() / 5}
			own, next := source(t, rng, recordings)
			s.sent = own.NewFrames(1024)
			there, err := newSchema(own)
			uplinktest.Must(t, err)
			if got, want := there.fingerprint(), own.Fingerprint(); got != want {
				t.Fatalf("-seed %d: fingerprint %x, want %x", n, got, want)
			}
			e, d := ends(t, there, direction == 0, codec, rpc, ring, copies)
			const length = 2000
			s.play(t, e, d, length, next)
			played[direction] += length
			delivered += s.delivered
			mismatches += s.mismatches
			if s.mismatches > 0 || s.delivered < length/2 {
				t.Errorf("-seed %d, direction %d: %d mismatches, %d of %d frames arrived", n, direction, s.mismatches, s.delivered, length)
			}
			if c, ok := e.(*nativeEncoder); ok {
				c.close()
			}
			if c, ok := d.(*nativeDecoder); ok {
				c.close()
			}
			there.close()
			if t.Failed() {
				return
			}
		}
		if (n-*seed)%1000 == 999 {
			t.Logf("%d frames in each direction after %v", played[0], time.Since(started).Round(time.Second))
		}
	}
	t.Logf("%d frames from Go, %d to Go, %d delivered, %d mismatches", played[0], played[1], delivered, mismatches)
}

func ends(t *testing.T, there *nativeSchema, fromGo bool, codec rpcdelta.Codec, rpc, ring, copies int) (e encoder, d decoder) {
	var err error
	if fromGo {
		d, err = there.newDecoder(codec, rpc, ring)
		uplinktest.Must(t, err)
		return goEncoder{newGoEncoder(t, there.of, codec, rpc, ring, copies)}, d
	}
	e, err = there.newEncoder(codec, rpc, ring, copies)
	uplinktest.Must(t, err)
	own, err := rpcdelta.NewDecoder(there.of, rpcdelta.DecoderConfig{Codec: codec, RPC: rpc, Ring: ring, PeerRing: ring})
	uplinktest.Must(t, err)
	return e, goDecoder{own}
}

func newGoEncoder(t testing.TB, s *schema.Schema, codec rpcdelta.Codec, rpc, ring, copies int) *rpcdelta.Encoder {
	if copies == 0 {
		copies = rpcdelta.RedundancyOff
	}
	e, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{Codec: codec, RPC: rpc, Ring: ring, PeerRing: ring, Redundancy: copies})
	uplinktest.Must(t, err)
	return e
}

// TestSamePayloads verifies that both encoders write the same bytes where they decide alike: with
// the same baseline, the same frames, and a hash in both or in none.
func TestSamePayloads(t *testing.T) {
	recordings := load(t)
	same, other := 0, 0
	for n := range uint64(60) {
		rng := rand.New(rand.NewPCG(n, 7))
		codec := []rpcdelta.Codec{rpcdelta.RLE, rpcdelta.Adaptive}[n%2]
		own, next := source(t, rng, recordings)
		there, err := newSchema(own)
		uplinktest.Must(t, err)
		native, err := there.newEncoder(codec, 0, 64, 0)
		uplinktest.Must(t, err)
		local := goEncoder{newGoEncoder(t, own, codec, 0, 64, 0)}
		d, err := rpcdelta.NewDecoder(own, rpcdelta.DecoderConfig{Codec: codec})
		uplinktest.Must(t, err)
		f, b1, b2 := own.NewFrame(), make([]byte, 1<<16), make([]byte, 1<<16)
		for i := range 500 {
			next(f)
			p1, err := local.encode(f, b1)
			uplinktest.Must(t, err)
			p2, err := native.encode(f, b2)
			uplinktest.Must(t, err)
			switch {
			case p1[0]&0x80 != p2[0]&0x80, hashed(p1) != hashed(p2):
				other++ // one has no baseline, or a hash that the other had before
			case string(p1) != string(p2):
				t.Fatalf("seed %d, frame %d, %v Hz: %x, want %x", n, i, own.RateHz(), p2, p1)
			default:
				same++
			}
			if _, err := d.Decode(p1); err == nil && i%4 == 3 {
				a := d.AppendAck(nil)
				uplinktest.Must(t, local.ack(a))
				uplinktest.Must(t, native.ack(a))
			}
		}
		native.close()
		there.close()
	}
	t.Logf("%d payloads are equal, of %d one has no baseline or no hash", same, other)
	if other > same/20 {
		t.Error("the encoders decide differently too often")
	}
}

// hashed reports whether a payload has a short header with a hash.
func hashed(payload []byte) bool { return payload[0]>>1 == 0b0100111 }

// moves returns calls of an RPC with 20 components.
func moves(b testing.TB) (*schema.Schema, []schema.Frame) {
	s, err := schema.New("Move", 60, []schema.Field{
		{Name: "Location", Kind: schema.KindVec3, Resolution: 0.1, Velocity: "Velocity"},
		{Name: "Velocity", Kind: schema.KindVec3, Resolution: 0.1},
		{Name: "Acceleration", Kind: schema.KindVec3, Resolution: 0.1},
		{Name: "View", Kind: schema.KindAngle, Count: 3},
		{Name: "Aim", Kind: schema.KindQuat},
		{Name: "Stick", Kind: schema.KindScalar, Count: 2, Resolution: 0.01},
		{Name: "Buttons", Kind: schema.KindBits, Width: 16},
		{Name: "Weapon", Kind: schema.KindUint, Width: 8},
	})
	uplinktest.Must(b, err)
	pick := schematest.FromRand(rand.New(rand.NewPCG(1, 1)))
	now, out := s.NewFrame(), s.NewFrames(3600)
	for i := range out {
		pick.Walk(s, now)
		out[i].CopyFrom(now)
	}
	return s, out
}

// BenchmarkMoves encodes and decodes 3,600 calls with 20 components, each acked 6 frames later.
func BenchmarkMoves(b *testing.B) {
	s, list := moves(b)
	const age = 6
	for _, codec := range []rpcdelta.Codec{rpcdelta.Adaptive, rpcdelta.RLE} {
		b.Run(codec.String()+"/go", func(b *testing.B) {
			for b.Loop() {
				e := newGoEncoder(b, s, codec, 0, 64, 0)
				d, err := rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{Codec: codec})
				uplinktest.Must(b, err)
				var payload []byte
				var acks [age][]byte
				for i := range list {
					if i >= age {
						a, _, err := rpcdelta.ParseAck(acks[i%age])
						uplinktest.Must(b, err)
						uplinktest.Must(b, e.Ack(a))
					}
					payload, _, err = e.AppendFrame(payload[:0], &list[i])
					uplinktest.Must(b, err)
					got, err := d.Decode(payload)
					if err != nil || !got[0].Frame.Equal(&list[i]) {
						b.Fatal(err)
					}
					acks[i%age] = d.AppendAck(acks[i%age][:0])
				}
			}
		})
		b.Run(codec.String()+"/native", func(b *testing.B) {
			there, err := newSchema(s)
			uplinktest.Must(b, err)
			defer there.close()
			var rows []int32
			for i := range list {
				rows = append(rows, list[i].Ints...)
			}
			for b.Loop() {
				n, err := there.playMoves(codec, rows, len(list), age)
				uplinktest.Must(b, err)
				if n != len(list) {
					b.Fatalf("%d of %d frames", n, len(list))
				}
			}
		})
	}
}
