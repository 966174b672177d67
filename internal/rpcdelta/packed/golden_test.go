package packed

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// goldens are small frames that were encoded by hand. Bits are listed in the order of the wire, low
// bit first. The header of a group is a truncated integer below 24: five bits, or four for 8 to 15.
// Each integer of the group has header+2 bits and is biased by half their range.
var goldens = []struct {
	name      string
	fields    fields
	base, cur schema.Frame // no components: no baseline
	want      string
}{
	// The largest magnitude is 1: header 0, three times two bits, biased by 2:
	// 00000 11 10 01, that is bits 5, 6, 7 and 10.
	{"vec3", fields{{Kind: schema.KindVec3, Resolution: 1}}, none, ints(1, -1, 0), "e0 04"},
	{"vec3 delta", fields{{Kind: schema.KindVec3, Resolution: 1}}, ints(100, -200, 300), ints(101, -201, 300), "e0 04"},
	// 300 has 9 bits: header 8 in four bits, two times ten bits, biased by 512:
	// 8 + 812<<4 + 513<<14 = 0x8072c8.
	{"vec2 with a short header", fields{{Kind: schema.KindVec2, Resolution: 1}}, none, ints(300, 1), "c8 72 80"},
	{
		// 2^23-1 and 1-2^23 differ by 2^24-2, which has 24 bits: header 23 in five
		// bits, 25 bits biased by 2^24: 23 + (2^25-2)<<5 = 0x3fffffd7.
		"largest difference",
		fields{{Kind: schema.KindScalar, Resolution: 1}},
		ints(1 - 1<<23), ints(1<<23 - 1), "d7 ff ff 3f",
	},
	{
		// A range above 2^23 steps has headers below 31: 20 bits, header 19 in five
		// bits (four do for 15 alone), 21 bits biased by 2^20:
		// 19 + (1000000+1048576)<<5 = 0x3e84813.
		"wide range",
		fields{{Kind: schema.KindScalar, Resolution: 1, Max: new(float64(1 << 30))}},
		none,
		ints(1_000_000), "13 48 e8 03",
	},
	{
		// 2^15 has 16 bits: header 15, which has four bits below 31; 17 bits biased
		// by 2^16: 15 + 98304<<4 = 0x18000f.
		"wide range, header 15",
		fields{{Kind: schema.KindScalar, Resolution: 1, Max: new(float64(1 << 30))}},
		none,
		ints(1 << 15), "0f 00 18",
	},
	// 0 is one bit; another angle is a one and all its bits: 0 then 1 then 0x1234,
	// 18 bits: 1<<1 + 0x1234<<2 = 0x48d2.
	{"angles", fields{{Kind: schema.KindAngle, Count: 2, Bits: 16}}, none, ints(0, 0x1234), "d2 48 00"},
	// From 0xffff to 1 it is 2 up, past the turn: 2 bits, header 1, three bits
	// biased by 4: 1 + 6<<5 = 0xc1.
	{"angle delta past the turn", fields{{Kind: schema.KindAngle, Bits: 16}}, ints(0xffff), ints(1), "c1"},
	// Half a turn is -2^7, the lower end: 8 bits, header 7 in five bits, nine bits
	// biased by 256: 7 + 128<<5 = 0x1007.
	{"angle delta of half a turn", fields{{Kind: schema.KindAngle, Bits: 8}}, ints(0), ints(128), "07 10"},
	// Index 3 in two bits and three zeros of 12: 38 bits.
	{"identity", fields{{Kind: schema.KindQuat, Bits: 12}}, none, ints(3, 0, 0, 0), "03 00 00 00 00"},
	// Index 1, then 5, -1 and 0 in four bits: 1 + 5<<2 + 15<<6 = 0x3d5.
	{"quat of four bits", fields{{Kind: schema.KindQuat, Bits: 4}}, none, ints(1, 5, -1, 0), "d5 03"},
	// A one for the same index; header 0, three twos: 1 00000 01 01 01.
	{"quat delta, same index", fields{{Kind: schema.KindQuat, Bits: 12}}, ints(3, 7, 8, 9), ints(3, 7, 8, 9), "81 0a"},
	{
		// A zero for another index, then as without a baseline: the bits of "quat of
		// four bits", one further up.
		"quat delta, another index",
		fields{{Kind: schema.KindQuat, Bits: 4}},
		ints(0, 1, 2, 3), ints(1, 5, -1, 0), "aa 07",
	},
	// Two numbers of one group, octahedral: as a vec2.
	{"unitvec", fields{{Kind: schema.KindUnitVec, Bits: 12}}, none, ints(300, 1), "c8 72 80"},
	// 20 bits are three bytes, low first; a literal of three: 0x83.
	{"uint", fields{{Kind: schema.KindUint, Width: 20}}, none, ints(0x12345), "83 45 23 01"},
	// The XOR is 01 00 00: a literal of one and a run of two zeros.
	{"uint delta", fields{{Kind: schema.KindUint, Width: 20}}, ints(0x12345), ints(0x12344), "81 01 02 00"},
	// -2 in 12 bits is sign-extended to two bytes, fe ff.
	{"int", fields{{Kind: schema.KindInt, Width: 12}}, none, ints(-2), "82 fe ff"},
	// From -1 to 0 all 16 bits change: a run of two ff.
	{"int delta past zero", fields{{Kind: schema.KindInt, Width: 12}}, ints(-1), ints(0), "02 ff"},
	// 40 bits are five bytes, those of the low half first.
	{"wide uint", fields{{Kind: schema.KindUint, Width: 40}}, none, ints(0x04030201, 0x05), "85 01 02 03 04 05"},
	// Three bools are three bytes.
	{"bools", fields{{Kind: schema.KindBool, Count: 3}}, none, ints(1, 1, 1), "03 01"},
	{
		"fixed",
		fields{{Kind: schema.KindFixed, Size: 4}},
		none,
		schema.Frame{Bytes: [][]byte{[]byte("abcd")}},
		"84 61 62 63 64",
	},
	{
		// The length as it is, XOR over the common part (h, e, l, p against h, e, l,
		// l), the rest as it is: 05 00 00 00 1c 21; the run of three zeros pays off.
		"bytes delta, growing",
		fields{{Kind: schema.KindBytes, Max: new(64.0)}},
		schema.Frame{Bytes: [][]byte{[]byte("hell")}},
		schema.Frame{Bytes: [][]byte{[]byte("help!")}},
		"81 05 03 00 82 1c 21",
	},
	{
		// The length 2, then two zeros: 02 00 00.
		"bytes delta, shrinking",
		fields{{Kind: schema.KindBytes, Max: new(64.0)}},
		schema.Frame{Bytes: [][]byte{[]byte("help!")}},
		schema.Frame{Bytes: [][]byte{[]byte("he")}},
		"81 02 02 00",
	},
	{
		// A length of 200 is the varint c8 01; 200 zeros are runs of 128 and 72.
		"long bytes",
		fields{{Kind: schema.KindBytes, Max: new(300.0)}},
		none,
		schema.Frame{Bytes: [][]byte{make([]byte, 200)}},
		"82 c8 01 80 00 48 00",
	},
	{
		// The numbers in field order: header 0 and 1 with the bias of 2, 00000 11, and
		// the angle's 0 are eight bits. Then the binary part of all fields, 07 ff ff: a
		// literal of one and a run of two.
		"fields of all sorts",
		fields{
			{Kind: schema.KindUint, Width: 8},
			{Kind: schema.KindScalar, Resolution: 1},
			{Kind: schema.KindFixed, Size: 2},
			{Kind: schema.KindAngle},
		},
		none,
		schema.Frame{Ints: []int32{7, 1, 0}, Bytes: [][]byte{{0xff, 0xff}}},
		"60 81 07 02 ff",
	},
}

type fields = []schema.Field

var none schema.Frame

func ints(v ...int32) schema.Frame { return schema.Frame{Ints: v} }

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenFrames(t *testing.T) {
	for _, g := range goldens {
		for i := range g.fields {
			g.fields[i].Name = string(rune('A' + i))
		}
		s := mustSchema(t, g.fields...)
		base := &g.base
		if len(base.Ints)+len(base.Bytes) == 0 {
			base = nil
		}
		want := unhex(t, g.want)
		c := NewCodec(Of(s))
		got, ok := c.Append(nil, &g.cur, base)
		if !ok || !bytes.Equal(got, want) {
			t.Errorf("%s: % x, want % x", g.name, got, want)
		}
		back := s.NewFrame()
		if err := c.Parse(back, base, want); err != nil || !back.Equal(&g.cur) {
			t.Errorf("%s: % x is %v, %v", g.name, want, back, err)
		}
		for n := range want {
			if err := c.Parse(back, base, want[:n]); err == nil {
				t.Errorf("%s: its first %d bytes are accepted", g.name, n)
			}
		}
		if err := c.Parse(back, base, append(want, 0)); err == nil {
			t.Errorf("%s: a byte more is accepted", g.name)
		}
	}
}

// TestGoldenErrors decodes payloads that no encoder writes.
func TestGoldenErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		field  schema.Field
		base   []int32
		coded  string
		reason string
	}{
		{"padding", schema.Field{Kind: schema.KindVec3, Resolution: 1}, nil, "e0 0c", "padding"},
		{"too much", schema.Field{Kind: schema.KindScalar, Resolution: 1, Max: new(100.0)}, nil, "a6 1c", "out of range"},
		{"sum too large", schema.Field{Kind: schema.KindScalar, Resolution: 1}, []int32{1<<23 - 1}, "60", "out of range"},
		{"unused quat component", schema.Field{Kind: schema.KindQuat, Bits: 4}, nil, "20 00", "out of range"},
		{"uint too wide", schema.Field{Kind: schema.KindUint, Width: 4}, nil, "81 10", "does not hold"},
		{"int too wide", schema.Field{Kind: schema.KindInt, Width: 4}, nil, "81 08", "does not hold"},
		{"length too large", schema.Field{Kind: schema.KindBytes, Max: new(3.0)}, nil, "85 04 01 02 03 04", "binary part"},
		{"length in two bytes", schema.Field{Kind: schema.KindBytes, Max: new(300.0)}, nil, "82 80 00", "does not hold"},
		{"length without bytes", schema.Field{Kind: schema.KindBytes, Max: new(3.0)}, nil, "82 03 01", "does not hold"},
		{"bytes behind", schema.Field{Kind: schema.KindBytes, Max: new(3.0)}, nil, "83 01 01 01", "too many"},
		{"run of nothing", schema.Field{Kind: schema.KindBool}, nil, "00 01", "binary part"},
		{"endless run", schema.Field{Kind: schema.KindBool}, nil, "80 00", "binary part"},
	} {
		c.field.Name = "Odd"
		s := mustSchema(t, c.field)
		var base *schema.Frame
		if c.base != nil {
			base = &schema.Frame{Ints: c.base}
		}
		f := s.NewFrame()
		if err := NewCodec(Of(s)).Parse(f, base, unhex(t, c.coded)); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, frame %v", c.name, err, f)
		}
	}
}
