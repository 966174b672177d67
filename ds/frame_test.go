package ds_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// walk is a call of 20 components, most of which change at random each time: no
// call of a game is harder.
type walk struct {
	Location     schema.Vec3    `uplink:"resolution=0.1,velocity=Velocity"`
	Velocity     schema.Vec3    `uplink:"resolution=0.1"`
	Acceleration schema.Vec3    `uplink:"resolution=0.1"`
	Rotation     schema.Rotator `uplink:"bits=16"`
	Aim          schema.Quat    `uplink:"bits=12"`
	Throttle     float32        `uplink:"resolution=0.01"`
	Steer        float32        `uplink:"resolution=0.01"`
	Buttons      uint16
	Weapon       uint8
}

func (m *walk) step(rng *rand.Rand) {
	step := func(v *float64, by float64) { *v += by * (rng.Float64() - 0.5) }
	step(&m.Acceleration.X, 20)
	step(&m.Acceleration.Y, 20)
	m.Velocity.X = 0.98 * (m.Velocity.X + m.Acceleration.X/60)
	m.Velocity.Y = 0.98 * (m.Velocity.Y + m.Acceleration.Y/60)
	m.Location.X += m.Velocity.X / 60
	m.Location.Y += m.Velocity.Y / 60
	step(&m.Rotation.Yaw, 3)
	step(&m.Rotation.Pitch, 1)
	step(&m.Aim.X, 0.02)
	step(&m.Aim.Y, 0.02)
	step(&m.Aim.Z, 0.02)
	m.Aim.W = 1
	m.Throttle = float32(math.Min(1, math.Abs(m.Acceleration.X/100)))
	if rng.IntN(30) == 0 {
		m.Buttons ^= 1 << rng.IntN(16)
	}
	if rng.IntN(300) == 0 {
		m.Weapon++
	}
}

// frameAge is how old the baselines of these benchmarks are.
const frameAge = 6

// BenchmarkFrame measures, in one run, the adaptive codec at both ends on a frame of 20 components,
// learning included, and the time to send a datagram of that size over loopback.
func BenchmarkFrame(b *testing.B) {
	b.Run("play", func(b *testing.B) { benchmarkFrames(b, pawnAt) })
	b.Run("noise", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(1, 0))
		var v walk
		benchmarkFrames(b, func(int) walk {
			v.step(rng)
			return v
		})
	})
}

// benchmarkFrames benchmarks a minute of calls, each acked when frameAge newer ones were sent.
func benchmarkFrames[T any](b *testing.B, at func(n int) T) {
	typ, err := schema.Compile[T]("Move", 0)
	uplinktest.Must(b, err)
	frames := make([]*schema.Frame, 3600)
	for i := range frames {
		v := at(i)
		frames[i] = typ.Schema().NewFrame()
		uplinktest.Must(b, typ.Quantize(frames[i], &v))
	}
	encoder := func(redundancy int) (encode func() []byte) {
		enc, err := rpcdelta.NewEncoder(typ.Schema(), rpcdelta.EncoderConfig{Codec: rpcdelta.Adaptive, Redundancy: redundancy})
		uplinktest.Must(b, err)
		var buf []byte
		next := 0
		return func() []byte {
			if n := next - frameAge; n >= 0 {
				if err := enc.Ack(rpcdelta.Ack{Seq: uint16(n), Window: 1, Len: min(n, 1), Whole: n < 2}); err != nil {
					b.Fatal(err)
				}
			}
			if buf, _, err = enc.AppendFrame(buf[:0], frames[next%len(frames)]); err != nil {
				b.Fatal(err)
			}
			next++
			return buf
		}
	}
	for _, c := range []struct {
		name       string
		redundancy int
	}{{"alone", rpcdelta.RedundancyOff}, {"2 older", 2}} {
		var payloads [][]byte
		size, encode := 0, encoder(c.redundancy)
		for range frames {
			payloads = append(payloads, bytes.Clone(encode()))
			size += len(payloads[len(payloads)-1])
		}
		b.Run(c.name+"/encode", func(b *testing.B) {
			encode := encoder(c.redundancy)
			b.ReportAllocs()
			for b.Loop() {
				encode()
			}
		})
		b.Run(c.name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			scratch := rpcdelta.NewScratch(typ.Schema())
			var dec *rpcdelta.Decoder
			for i := 0; b.Loop(); i++ {
				if i %= len(payloads); i == 0 {
					dec = newDecoder(b, typ.Schema(), rpcdelta.Adaptive, scratch)
				}
				if _, err := dec.Decode(payloads[i]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/send", func(b *testing.B) { benchmarkSend(b, 3+size/len(payloads)) })
	}
}

func newDecoder(b *testing.B, s *schema.Schema, codec rpcdelta.Codec, scratch *rpcdelta.Scratch) *rpcdelta.Decoder {
	d, err := rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{Codec: codec, PeerRing: rpcdelta.DefaultRing, Scratch: scratch})
	uplinktest.Must(b, err)
	return d
}

// benchmarkSend reports the time of one send. The receiver reads what came
// between batches, so that its buffer never overflows.
func benchmarkSend(b *testing.B, size int) {
	const batch = 64
	from, err := transport.UDP().ListenPacket("127.0.0.1:0")
	uplinktest.Must(b, err)
	to, err := transport.UDP().ListenPacket("127.0.0.1:0")
	uplinktest.Must(b, err)
	datagram := make([]byte, size)
	in := make([]byte, 2*size)
	var spent time.Duration
	sent := 0
	for b.Loop() {
		begin := time.Now()
		for range batch {
			if _, err := from.WriteTo(datagram, to.LocalAddr()); err != nil {
				b.Fatal(err)
			}
		}
		spent += time.Since(begin)
		sent += batch
		uplinktest.Must(b, to.SetReadDeadline(time.Now().Add(time.Minute))) // one may be lost, over loopback too
		for range batch {
			if _, _, err := to.ReadFrom(in); err != nil {
				b.Fatal(err)
			}
		}
	}
	uplinktest.Must(b, from.Close())
	uplinktest.Must(b, to.Close())
	b.ReportMetric(float64(spent.Nanoseconds())/float64(sent), "ns/op")
	b.ReportMetric(float64(size), "bytes")
}
