package ds_test

import (
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
	b.Run("play", func(b *testing.B) { benchmarkFrames(b, playFrames) })
	b.Run("noise", func(b *testing.B) { benchmarkFrames(b, noiseFrames) })
}

func benchmarkFrames(b *testing.B, quantize func(testing.TB) (*schema.Schema, []*schema.Frame)) {
	move, frames := quantize(b)
	for _, c := range []struct {
		name       string
		redundancy int
	}{{"alone", rpcdelta.RedundancyOff}, {"2 older", 2}} {
		e := newFrameEncoder(b, move, frames, c.redundancy)
		payloads := newFrameEncoder(b, move, frames, c.redundancy).all(b)
		b.Run(c.name+"/encode", e.benchmark)
		b.Run(c.name+"/decode", func(b *testing.B) { benchmarkDecode(b, move, payloads) })
		b.Run(c.name+"/send", func(b *testing.B) { benchmarkSend(b, 3+meanSize(payloads)) })
	}
}

// playFrames are a minute of play.
func playFrames(t testing.TB) (*schema.Schema, []*schema.Frame) {
	typ, err := schema.Compile[pawn]("Move", 0)
	uplinktest.Must(t, err)
	frames := make([]*schema.Frame, 3600)
	for i := range frames {
		v := pawnAt(i)
		frames[i] = typ.Schema().NewFrame()
		uplinktest.Must(t, typ.Quantize(frames[i], &v))
	}
	return typ.Schema(), frames
}

// noiseFrames are a minute of walk.
func noiseFrames(t testing.TB) (*schema.Schema, []*schema.Frame) {
	typ, err := schema.Compile[walk]("Move", 0)
	uplinktest.Must(t, err)
	frames := make([]*schema.Frame, 3600)
	rng := rand.New(rand.NewPCG(1, 0))
	var v walk
	for i := range frames {
		v.step(rng)
		frames[i] = typ.Schema().NewFrame()
		uplinktest.Must(t, typ.Quantize(frames[i], &v))
	}
	return typ.Schema(), frames
}

// frameEncoder encodes frames, each acked when frameAge newer ones were sent.
type frameEncoder struct {
	*rpcdelta.Encoder
	frames []*schema.Frame
	next   int
	buf    []byte
}

func newFrameEncoder(t testing.TB, s *schema.Schema, frames []*schema.Frame, redundancy int) *frameEncoder {
	enc, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{Codec: rpcdelta.Adaptive, Redundancy: redundancy})
	uplinktest.Must(t, err)
	return &frameEncoder{Encoder: enc, frames: frames}
}

func (e *frameEncoder) encode() (err error) {
	if n := e.next - frameAge; n >= 0 {
		ack := rpcdelta.Ack{Seq: uint16(n), Window: 1, Len: min(n, 1), Whole: n < 2}
		if err := e.Ack(ack); err != nil {
			return err
		}
	}
	e.buf, _, err = e.AppendFrame(e.buf[:0], e.frames[e.next%len(e.frames)])
	e.next++
	return err
}

func (e *frameEncoder) benchmark(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := e.encode(); err != nil {
			b.Fatal(err)
		}
	}
}

// all encodes the frames and returns their payloads.
func (e *frameEncoder) all(t testing.TB) (payloads [][]byte) {
	for range e.frames {
		uplinktest.Must(t, e.encode())
		payloads = append(payloads, append([]byte(nil), e.buf...))
	}
	return payloads
}

func meanSize(payloads [][]byte) int {
	n := 0
	for _, p := range payloads {
		n += len(p)
	}
	return n / len(payloads)
}

func benchmarkDecode(b *testing.B, s *schema.Schema, payloads [][]byte) {
	b.ReportAllocs()
	scratch := rpcdelta.NewScratch(s)
	var dec *rpcdelta.Decoder
	i := 0
	for b.Loop() {
		if i == 0 {
			var err error
			dec, err = rpcdelta.NewDecoder(s, rpcdelta.DecoderConfig{Codec: rpcdelta.Adaptive, Scratch: scratch})
			uplinktest.Must(b, err)
		}
		if _, err := dec.Decode(payloads[i]); err != nil {
			b.Fatal(err)
		}
		i = (i + 1) % len(payloads)
	}
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
