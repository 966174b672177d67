package cost

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
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

// BenchmarkFrame measures the adaptive codec at both ends on a frame of 20 components, learning
// included, and the sending of its datagrams over loopback, in turns of 64 frames.
func BenchmarkFrame(b *testing.B) {
	b.Run("play", func(b *testing.B) { benchmarkFrames(b, uplinktest.PawnAt) })
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
		b.Run(c.name, func(b *testing.B) {
			encode, scratch := encoder(c.redundancy), rpcdelta.NewScratch(typ.Schema())
			dec := newDecoder(b, typ.Schema(), rpcdelta.Adaptive, scratch)
			l, payloads := newLoop(b), make([][]byte, turn)
			var encoding, decoding, sending time.Duration
			n := 0
			for b.Loop() {
				begin := time.Now()
				for i := range payloads {
					payloads[i] = append(payloads[i][:0], encode()...)
				}
				encoding += time.Since(begin)
				sending += l.send(b, payloads)
				begin = time.Now()
				for _, p := range payloads {
					if _, err := dec.Decode(p); err != nil {
						b.Fatal(err)
					}
				}
				decoding += time.Since(begin)
				n += turn
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(encoding.Nanoseconds())/float64(n), "encode-ns")
			b.ReportMetric(float64(decoding.Nanoseconds())/float64(n), "decode-ns")
			b.ReportMetric(float64(sending.Nanoseconds())/float64(n), "send-ns")
			b.ReportMetric(float64(encoding)/float64(sending), "encode/send")
			b.ReportMetric(float64(decoding)/float64(sending), "decode/send")
		})
	}
}

func newDecoder(b *testing.B, s *schema.Schema, codec rpcdelta.Codec, scratch *rpcdelta.Scratch) *rpcdelta.Decoder {
	d, err := rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{Codec: codec, PeerRing: rpcdelta.DefaultRing, Scratch: scratch})
	uplinktest.Must(b, err)
	return d
}

// turn is the number of frames that are encoded, sent and decoded in turns. The sockets' buffers
// hold them.
const turn = 64

// loop sends datagrams over loopback.
type loop struct {
	from, to transport.PacketConn
	in       []byte
}

func newLoop(b *testing.B) *loop {
	l := &loop{in: make([]byte, 2048)}
	for _, end := range []*transport.PacketConn{&l.from, &l.to} {
		conn, err := transport.UDP().ListenPacket("127.0.0.1:0")
		uplinktest.Must(b, err)
		b.Cleanup(func() { _ = conn.Close() })
		*end = conn
	}
	return l
}

// send returns the time of the sends of these datagrams, and then receives them.
func (l *loop) send(b *testing.B, datagrams [][]byte) time.Duration {
	to := l.to.LocalAddr()
	begin := time.Now()
	for _, d := range datagrams {
		if _, err := l.from.WriteTo(d, to); err != nil {
			b.Fatal(err)
		}
	}
	spent := time.Since(begin)
	uplinktest.Must(b, l.to.SetReadDeadline(time.Now().Add(time.Minute))) // one may be lost, over loopback too
	for range datagrams {
		if _, _, err := l.to.ReadFrom(l.in); err != nil {
			b.Fatal(err)
		}
	}
	return spent
}
