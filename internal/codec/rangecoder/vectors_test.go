package rangecoder

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// vectorStep is an operation of the range coder and the encoder's state after it.
type vectorStep struct {
	Op    string   `json:"op"` // bit, raw or symbol
	Value uint64   `json:"value"`
	P0    uint32   `json:"p0,omitempty"`   // of a bit
	Bits  uint     `json:"bits,omitempty"` // of raw
	Freq  []uint32 `json:"frequencies,omitempty"`
	Low   string   `json:"low"`
	Carry uint64   `json:"carry"` // low ran over since the last bytes were written
	Range string   `json:"range"`
	Bytes string   `json:"bytes"` // written so far
}

// vectorPayload is a coded part. Header is the header's last byte, of which Free bits are free.
type vectorPayload struct {
	Name   string       `json:"name"`
	Header string       `json:"header,omitempty"`
	Free   uint         `json:"free"`
	Steps  []vectorStep `json:"steps"`
	Bytes  string       `json:"bytes"`
}

// TestVectors writes or compares testdata/vectors/rangecoder.json, and decodes each payload.
func TestVectors(t *testing.T) {
	bit := func(v uint64, p0 uint32) vectorStep { return vectorStep{Op: "bit", Value: v, P0: p0} }
	raw := func(v uint64, n uint) vectorStep { return vectorStep{Op: "raw", Value: v, Bits: n} }
	freq := []uint32{40000, 20000, 5000, 300, 100, 78}
	for len(freq) < Symbols {
		freq = append(freq, 1)
	}
	sym := func(v uint64) vectorStep { return vectorStep{Op: "symbol", Value: v, Freq: freq} }
	payloads := []vectorPayload{
		{Name: "likely decisions take no bytes", Steps: []vectorStep{bit(0, 65000), bit(0, 65000), bit(0, 60500)}},
		{Name: "decisions and raw bits", Steps: []vectorStep{bit(0, 60500), bit(1, 60500), raw(5, 3), bit(1, 48), raw(0xabcde, 20)}},
		{Name: "one raw number is not three", Steps: []vectorStep{bit(1, 300), raw(0x2b, 6), raw(0x155, 9), raw(1, 1), raw(0x1abcd, 17)}},
		{Name: "symbols", Steps: []vectorStep{sym(0), sym(1), sym(5), sym(63), sym(2), raw(0, 0), sym(40), bit(0, 1)}},
		{Name: "carry", Steps: carrySteps()},
		{Name: "after 2 bits of a header", Header: "c0", Free: 6, Steps: []vectorStep{bit(0, 60500), bit(1, 30000), raw(9, 4), sym(3)}},
		{Name: "after 7 bits of a header, nothing else", Header: "a2", Free: 1, Steps: []vectorStep{bit(0, 65000)}},
		{Name: "more than 64 raw bits", Steps: []vectorStep{bit(1, 2), raw(0xfedcba9876543210, 70)}},
	}
	for i := range payloads {
		encodeVector(t, &payloads[i])
		decodeVector(t, &payloads[i])
	}
	var bad []string
	for _, in := range []string{"00", "e000", "ffffffffffffffff", "0000000000000000000000ff"} {
		b, _ := hex.DecodeString(in)
		var d Decoder
		d.Reset(b, 0)
		d.BitNoRenorm(60500)
		d.Renorm()
		if !d.Complete() {
			bad = append(bad, in)
		}
	}
	vectors.Check(t, "testdata/vectors/rangecoder.json",
		vectors.Section{Name: "payloads", Value: payloads},
		vectors.Section{Name: "malformed_after_one_bit_60500", Value: bad})
}

// carrySteps returns decisions that cause a carry into bytes that were written.
func carrySteps() []vectorStep {
	for seed := uint64(0); ; seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		var e Encoder
		e.Reset(nil, 0)
		var steps []vectorStep
		for len(steps) < 14 {
			s := vectorStep{Op: "raw", Value: r.Uint64() & 0x7ff, Bits: 11}
			if len(steps)%2 == 0 {
				s = vectorStep{Op: "bit", Value: r.Uint64() & 1, P0: 1 + r.Uint32N(Scale-1)}
				e.BitNoRenorm(s.Value == 1, s.P0)
				e.Renorm()
			} else {
				e.Raw(s.Value, s.Bits)
			}
			steps = append(steps, s)
			if e.over != 0 && len(e.buf) > 0 {
				return append(steps, vectorStep{Op: "raw", Value: 0x1234, Bits: 32})
			}
		}
	}
}

func encodeVector(t *testing.T, p *vectorPayload) {
	t.Helper()
	head, err := hex.DecodeString(p.Header)
	if err != nil {
		t.Fatal(err)
	}
	var e Encoder
	e.Reset(head, p.Free)
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Op {
		case "bit":
			e.BitNoRenorm(s.Value == 1, s.P0)
			e.Renorm()
		case "raw":
			e.Raw(s.Value, s.Bits)
		default:
			e.Symbol(vectorTable(s.Freq), int(s.Value))
		}
		s.Low, s.Range, s.Carry = fmt.Sprintf("%016x", e.low), fmt.Sprintf("%016x", e.rng), e.over
		s.Bytes = hex.EncodeToString(e.buf)
	}
	p.Bytes = hex.EncodeToString(e.Finish())
}

func decodeVector(t *testing.T, p *vectorPayload) {
	t.Helper()
	b, err := hex.DecodeString(p.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	d.Reset(b, p.Free)
	for i, s := range p.Steps {
		var got uint64
		switch s.Op {
		case "bit":
			if d.BitNoRenorm(s.P0) {
				got = 1
			}
			d.Renorm()
		case "raw":
			got = d.Raw(s.Bits)
		default:
			got = uint64(d.Symbol(vectorTable(s.Freq)))
		}
		if got != s.Value {
			t.Errorf("%s: step %d is %d, want %d", p.Name, i, got, s.Value)
		}
	}
	if !d.Complete() {
		t.Errorf("%s: %s is not complete", p.Name, p.Bytes)
	}
}

func vectorTable(freq []uint32) *Table {
	var f [Symbols]uint16
	for i, n := range freq {
		f[i] = uint16(n)
	}
	t := new(Table)
	t.Set(&f)
	return t
}
