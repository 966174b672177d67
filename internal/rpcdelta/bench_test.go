package rpcdelta

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// walkMoves returns n consecutive calls of a player.
func walkMoves(rng *rand.Rand, n int) []ServerMove {
	moves := make([]ServerMove, n)
	var m ServerMove
	for i := range moves {
		m.walk(rng)
		moves[i] = m
		moves[i].Payload = slices.Clone(m.Payload)
	}
	return moves
}

// benchFrames returns one minute of calls with 20 components at 60 Hz.
func benchFrames(b *testing.B) (c *schema.Type[ServerMove], moves []ServerMove, frames []schema.Frame) {
	b.Helper()
	c = mustCompile[ServerMove](b)
	moves = walkMoves(rand.New(rand.NewPCG(1, 0)), 3600)
	frames = c.Schema().NewFrames(len(moves))
	for i := range moves {
		must(b, c.Quantize(&frames[i], &moves[i]))
	}
	b.ReportAllocs()
	return c, moves, frames
}

const benchAge = 6 // frames between a frame and the newest that is acked

// settle exchanges frames until the baseline is benchAge frames old.
func (p *pair) settle(b *testing.B, frames []schema.Frame) {
	b.Helper()
	for i := range benchAge {
		p.frame.CopyFrom(&frames[i])
		p.exchange(b)
	}
}

func BenchmarkQuantize(b *testing.B) {
	c, moves, _ := benchFrames(b)
	f := c.Schema().NewFrame()
	i := 0
	for b.Loop() {
		must(b, c.Quantize(f, &moves[i]))
		i = (i + 1) % len(moves)
	}
}

func BenchmarkRestore(b *testing.B) {
	c, _, frames := benchFrames(b)
	var v ServerMove
	i := 0
	for b.Loop() {
		must(b, c.Restore(&v, &frames[i]))
		i = (i + 1) % len(frames)
	}
}

var benchVariants = []variant{{codec: RLE}, {codec: Adaptive, redundancy: RedundancyOff}, {codec: Adaptive, redundancy: 2}}

// BenchmarkEncode includes the time in which the encoder learns from acks.
func BenchmarkEncode(b *testing.B) {
	for _, v := range benchVariants {
		b.Run(v.String(), func(b *testing.B) { benchEncode(b, v) })
	}
}

func benchEncode(b *testing.B, v variant) {
	c, _, frames := benchFrames(b)
	p := newPair(b, c.Schema(), v.encoder(EncoderConfig{}), DecoderConfig{})
	p.settle(b, frames)
	for i := range benchAge { // those under way
		p.frame.CopyFrom(&frames[benchAge+i])
		p.send(b)
	}
	var total Stats
	i := 2 * benchAge
	for b.Loop() {
		p.enc.process(p.enc.next - benchAge) // as an ack would have it
		var info Info
		var err error
		if p.payload, info, err = p.enc.AppendFrame(p.payload[:0], &frames[i]); err != nil {
			b.Fatal(err)
		}
		total.Count(&info)
		i = (i + 1) % len(frames)
	}
	n := float64(total.Frames())
	b.ReportMetric(float64(total.PayloadBits)/n, "payload-bits/frame")
	b.ReportMetric(float64(total.HeaderBits)/n, "header-bits/frame")
	b.ReportMetric(float64(total.FullBits)/n, "full-bits/frame")
}

func BenchmarkDecode(b *testing.B) {
	for _, v := range benchVariants {
		b.Run(v.String(), func(b *testing.B) { benchDecode(b, v) })
	}
}

func benchDecode(b *testing.B, v variant) {
	c, _, frames := benchFrames(b)
	var payloads [][]byte
	p := newPair(b, c.Schema(), v.encoder(EncoderConfig{}), DecoderConfig{})
	for i := range frames {
		if i >= benchAge {
			p.enc.process(uint64(i - benchAge)) // as an ack would have it
		}
		p.frame.CopyFrom(&frames[i])
		p.send(b)
		p.receive(b)
		payloads = append(payloads, slices.Clone(p.payload))
	}
	fresh := *p.dec // its rings are shared: the first payload resets them
	fresh.processed.Any = false
	i := 0
	for b.Loop() {
		if i == 0 {
			*p.dec = fresh
		}
		if _, err := p.dec.Decode(payloads[i]); err != nil {
			b.Fatal(err)
		}
		i = (i + 1) % len(payloads)
	}
}

func BenchmarkAck(b *testing.B) {
	c, _, frames := benchFrames(b)
	p := newPair(b, c.Schema(), EncoderConfig{}, DecoderConfig{})
	p.settle(b, frames)
	for b.Loop() {
		p.acknowledge(b)
	}
	b.ReportMetric(float64(8*len(p.ack)), "bits/ack")
}
