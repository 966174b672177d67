package rpcdelta

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/packed"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// headerVector is a header.
type headerVector struct {
	RPC      uint8   `json:"rpc"`
	Long     bool    `json:"long"`
	Sequence uint16  `json:"sequence"` // low bits
	Distance int     `json:"distance"` // 0 without a baseline
	Epoch    uint8   `json:"epoch,omitempty"`
	Hash     *uint16 `json:"hash"`
	Bits     string  `json:"bits,omitempty"` // of a short header, in order
	Bytes    string  `json:"bytes"`          // free bits are 0
	Free     uint    `json:"free"`           // bits of the last byte that the header leaves
}

func headerVectors(t *testing.T) (all []headerVector) {
	for _, c := range []struct {
		rpc      int
		sequence uint64
		distance int
		epoch    uint8
		hash     int // -1: none
	}{
		{0, 0, 1, 0, -1},
		{0, 77, 6, 0, -1},
		{0, 127, 16, 0, -1},
		{0, 128, 17, 0, -1},
		{0, 300, 32, 0, -1},
		{0, 301, 33, 0, -1},
		{0, 302, 64, 0, -1},
		{0, 70000, 65, 0, -1},
		{1, 5, 1, 0, -1},
		{3, 77, 17, 0, -1},
		{4, 77, 6, 0, -1},
		{10, 127, 64, 0, -1},
		{11, 77, 6, 0, -1},
		{200, 0x1234, 255, 0, -1},
		{0, 77, 6, 0, 0xbeef},
		{0, 77, 40, 0, 0},
		{2, 77, 20, 0, 0xffff},
		{3, 1, 33, 0, 1},
		{4, 0x1234, 2, 0, 0xbeef},
		{0, 0x1234, 100, 0, 0x0102},
		{0, 0, 0, 0, -1},
		{9, 0xfffe, 0, 5, -1},
		{255, 0x1ffff, 0, 7, -1},
	} {
		h := wire.NewHeader(c.rpc, c.sequence, c.distance, c.epoch)
		if c.distance != 0 {
			h.Epoch = 0
		}
		v := headerVector{RPC: h.RPC, Distance: h.Distance, Epoch: h.Epoch}
		if c.hash >= 0 {
			h.SetHash(uint16(c.hash))
			v.Hash = &h.Hash
		}
		if !h.Long {
			h.Seq &= 127
		}
		b := h.Append(nil)
		v.Long, v.Sequence, v.Bytes, v.Free = h.Long, h.Seq, hex.EncodeToString(b), h.FreeBits()
		if !h.Long {
			for _, x := range b {
				v.Bits += fmt.Sprintf("%08b", x)
			}
			v.Bits = v.Bits[:h.Bits()]
		}
		back, err := wire.Parse(b)
		if err != nil || back != h {
			t.Errorf("header %s is %+v, %v; want %+v", v.Bytes, back, err, h)
		}
		all = append(all, v)
	}
	return all
}

// unwrapVector is a sequence in a header and what it stands for; -1: it is late.
type unwrapVector struct {
	Long     bool   `json:"long"`
	Low      uint16 `json:"low"`
	Newest   uint64 `json:"newest"`
	Sequence int64  `json:"sequence"`
}

func unwrapVectors() (all []unwrapVector) {
	for _, v := range []unwrapVector{
		{false, 5, 4, 0},
		{false, 68, 4, 0},
		{false, 69, 4, 0},
		{false, 127, 4, 0},
		{false, 0, 100, 0},
		{false, 37, 100, 0},
		{false, 36, 100, 0},
		{false, 100, 1 << 40, 0},
		{true, 0, 70000, 0},
		{true, 4000, 70000, 0},
		{true, 3440, 70000, 0},
		{true, 3441, 70000, 0},
		{true, 65535, 5, 0},
		{true, 64600, 5, 0},
	} {
		h := wire.Header{Long: v.Long, Seq: v.Low, Distance: 1}
		v.Sequence = -1
		if n, ok := h.Unwrap(v.Newest); ok {
			v.Sequence = int64(n)
		}
		all = append(all, v)
	}
	return all
}

// ackVector is an ack.
type ackVector struct {
	Stream  uint8  `json:"stream"`
	Epoch   uint8  `json:"epoch"`
	Request uint8  `json:"request"`
	None    bool   `json:"none"`
	Whole   bool   `json:"whole"`
	Newest  uint16 `json:"newest"` // low bits
	Length  int    `json:"length"`
	Window  string `json:"window"` // hexadecimal
	Bytes   string `json:"bytes"`
}

func ackVectors(t *testing.T) (all []ackVector) {
	ones := func(n uint64) uint64 { return seq.Mask(n) }
	for _, a := range []seq.Ack{
		{Newest: 1023, Len: 0},
		{Newest: 0x155, Len: 15, Window: ones(15)},
		{Newest: 7, Len: 16, Window: ones(16)},
		{Newest: 7, Len: 15, Window: ones(15) &^ 1},
		{Stream: 7, Epoch: 7, Newest: 900, Len: 62, Window: ones(62)},
		{Stream: 1, Newest: 5, Len: 5, Window: ones(5) &^ (ones(2) << 1)},
		{Newest: 600, Len: 40, Window: ones(40) &^ (ones(7) << 31)},
		{Newest: 600, Len: 40, Window: ones(40) &^ (ones(8) << 3)},
		{Newest: 600, Len: 40, Window: ones(40) &^ (1 << 32)},
		{Newest: 600, Len: 4, Window: 0b0101},
		{Newest: 600, Len: 62, Window: 0x2aaaaaaaaaaaaaaa},
		{Newest: 0xabcd, Len: 63, Window: ones(63)},
		{Newest: 0xabcd, Len: 63, Window: 1},
		{Newest: 2, Len: 2, Window: 3, Whole: true},
		{Stream: 8, Newest: 0x1234, Len: 1, Window: 1},
		{Stream: 255, Epoch: 3, Newest: 0x1234, Len: 9, Window: 0x155, Whole: true},
		{Reset: 1, Newest: 0x1234, Len: 2, Window: 3},
		{Reset: 2, Epoch: 1, Newest: 0xffff, Len: 6, Window: 0b111001},
		{None: true},
		{None: true, Reset: 1},
		{None: true, Reset: 1, Stream: 12},
	} {
		b := a.Append(nil)
		back, rest, ok := seq.ParseAck(append(b[:len(b):len(b)], 0xee))
		if !ok || len(rest) != 1 || back != a {
			t.Errorf("ack % x is %+v, %t; want %+v", b, back, ok, a)
		}
		all = append(all, ackVector{
			a.Stream, a.Epoch, a.Reset, a.None, a.Whole, a.Newest, a.Len,
			fmt.Sprintf("%x", a.Window), hex.EncodeToString(b),
		})
	}
	return all
}

// malformed returns the inputs that accepts reports false for. All of them must be such.
func malformed(t *testing.T, accepts func(b []byte) bool, inputs ...string) []string {
	t.Helper()
	for _, in := range inputs {
		if b, err := hex.DecodeString(in); err != nil || accepts(b) {
			t.Errorf("%s is accepted, %v", in, err)
		}
	}
	return inputs
}

// TestFrameVectors writes or compares testdata/vectors/frames.json.
func TestFrameVectors(t *testing.T) {
	type hashed struct {
		Ints  []int32  `json:"ints"`
		Bytes []string `json:"bytes"`
		Hash  string   `json:"hash"`
	}
	var hashes []hashed
	for _, f := range []schema.Frame{
		{},
		{Ints: []int32{0}},
		{Ints: []int32{1, -1, 1 << 30}},
		{Ints: []int32{-2147483648}, Bytes: [][]byte{{}, []byte("abc")}},
	} {
		h := hashed{f.Ints, []string{}, fmt.Sprintf("%04x", hashFrame(&f))}
		for _, b := range f.Bytes {
			h.Bytes = append(h.Bytes, hex.EncodeToString(b))
		}
		hashes = append(hashes, h)
	}
	vectors.Check(t, "testdata/vectors/frames.json",
		vectors.Section{Name: "headers", Value: headerVectors(t)},
		vectors.Section{Name: "malformed_headers", Value: malformed(t, func(b []byte) bool {
			_, err := wire.Parse(b)
			return !errors.Is(err, ErrMalformed)
		}, "", "00", "4000", "4e000000", "4f2000000000", "80000000", "8000000008", "a000000000", "90000000000102", "b00000000101", "8800000000")},
		vectors.Section{Name: "unwrap", Value: unwrapVectors()},
		vectors.Section{Name: "acks", Value: ackVectors(t)},
		vectors.Section{Name: "malformed_acks", Value: malformed(t, func(b []byte) bool {
			_, rest, err := ParseAck(b)
			return err == nil && len(rest) == 0
		}, "", "81", "0000", "000000", "0105000100", "0f", "0700000000", "810000", "41000800050000", "210500043f00", "80010020", "80048002e0")},
		vectors.Section{Name: "hashes", Value: hashes})
}

// rleVector is a payload of the codec rle.
type rleVector struct {
	Header  headerVector `json:"header"`
	Base    []int32      `json:"base,omitempty"`
	BaseB   []string     `json:"base_bytes,omitempty"`
	Ints    []int32      `json:"ints"`
	Bytes   []string     `json:"bytes,omitempty"`
	Payload string       `json:"payload"`
}

// kindsFields has every kind of field.
const kindsFields = `{"name":"P","kind":"vec3","resolution":0.1},{"name":"W","kind":"scalar","resolution":1,"max":1073741824},` +
	`{"name":"A","kind":"angle","count":2,"bits":12},{"name":"Q","kind":"quat","bits":10},{"name":"N","kind":"unitvec","bits":9},` +
	`{"name":"U","kind":"uint","width":20},{"name":"B","kind":"uint","width":40},{"name":"I","kind":"int","count":2,"width":12},` +
	`{"name":"L","kind":"int","width":50},{"name":"S","kind":"bits","width":3},{"name":"T","kind":"bool","count":3},` +
	`{"name":"F","kind":"fixed","size":3},{"name":"V","kind":"bytes","max":200}`

// TestRLEVectors writes or compares the payloads of testdata/vectors/rle.json.
func TestRLEVectors(t *testing.T) {
	base := schema.Frame{
		Ints:  []int32{10, -20, 30, 5, 0, 4095, 3, 1, -2, 3, 100, -100, 70000, -1, 200, -5, 7, 1000, -3, 5, 1, 0, 1},
		Bytes: [][]byte{[]byte("abc"), []byte("hello hello")},
	}
	next := schema.Frame{
		Ints:  []int32{11, -21, 30, 1 << 20, 4095, 0, 3, 2, -2, 3, 101, -100, 70001, 0, 201, 5, -7, -1000, 2, 4, 1, 1, 1},
		Bytes: [][]byte{[]byte("abd"), []byte("hello there, hello")},
	}
	turned := schema.Frame{Ints: append([]int32{}, next.Ints...), Bytes: [][]byte{make([]byte, 3), make([]byte, 200)}}
	turned.Ints[6], turned.Ints[3] = 0, -(1<<23 - 1)
	far := schema.Frame{Ints: append([]int32{}, base.Ints...), Bytes: base.Bytes}
	far.Ints[3] = 1 << 30
	var all []rleVector
	for _, c := range []struct {
		rpc      int
		n        uint64
		distance int
		epoch    uint8
		hash     bool
		base     *schema.Frame
		f        *schema.Frame
	}{
		{0, 0, 0, 0, false, nil, &base},
		{0, 1, 1, 0, false, &base, &next},
		{3, 9, 2, 0, false, &base, &base},
		{2, 60, 3, 0, true, &base, &next},
		{7, 60, 3, 0, true, &next, &turned},
		{200, 0x12345, 200, 0, true, &next, &base},
		{9, 0x1ffff, 0, 6, false, nil, &turned},
		{0, 2, 1, 0, false, &base, &far},
	} {
		s, err := schema.Parse([]byte(`{"rpc":"Vector","fields":[` + kindsFields + `]}`))
		must(t, err)
		must(t, s.Check(c.f))
		h := wire.NewHeader(c.rpc, c.n, c.distance, c.epoch)
		if c.hash {
			h.SetHash(hashFrame(c.base))
		}
		if !h.Long {
			h.Seq &= 127
		}
		codec := packed.NewCodec(packed.Of(s))
		head := h.Append(nil)
		payload, ok := codec.Append(head, c.f, c.base)
		back := s.NewFrame()
		if err := codec.Parse(back, c.base, payload[len(head):]); !ok || err != nil || !back.Equal(c.f) {
			t.Errorf("payload %x of %v is %v, %v", payload, c.f, back, err)
		}
		v := rleVector{Ints: c.f.Ints, Bytes: texts(c.f.Bytes), Payload: hex.EncodeToString(payload)}
		v.Header = headerVector{RPC: h.RPC, Long: h.Long, Sequence: h.Seq, Distance: h.Distance, Epoch: h.Epoch, Bytes: hex.EncodeToString(head), Free: h.FreeBits()}
		if h.Checked {
			v.Header.Hash = &h.Hash
		}
		if c.base != nil {
			v.Base, v.BaseB = c.base.Ints, texts(c.base.Bytes)
		}
		all = append(all, v)
	}
	if !strings.Contains(all[5].Payload, all[5].Header.Bytes) {
		t.Error("the payload does not begin with its header")
	}
	vectors.Check(t, "testdata/vectors/rle.json",
		vectors.Section{Name: "schema", Value: json.RawMessage(`{"rpc":"Vector","fields":[` + kindsFields + `]}`)},
		vectors.Section{Name: "payloads", Value: all})
}

func texts(b [][]byte) (out []string) {
	for _, x := range b {
		out = append(out, hex.EncodeToString(x))
	}
	return out
}
