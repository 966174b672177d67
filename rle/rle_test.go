package rle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// vector is an entry of testdata/vectors/runlength.json, whose first field describes the format.
// The plain bytes are in one of three forms: as they are, [byte, count], or [first, how many more
// by one each].
type vector struct {
	Note        string  `json:"note"`
	Plain       string  `json:"plain"`
	PlainRepeat [2]any  `json:"plain_repeat"`
	PlainCount  [2]int  `json:"plain_count"`
	Coded       *string `json:"coded"`
	CodedLen    int     `json:"coded_len"`
	Limit       *int    `json:"limit"`
}

func (v vector) plain(t *testing.T) (b []byte) {
	t.Helper()
	if text, ok := v.PlainRepeat[0].(string); ok {
		return bytes.Repeat(unhex(t, text), int(v.PlainRepeat[1].(float64)))
	}
	for i := range v.PlainCount[1] {
		b = append(b, byte(v.PlainCount[0]+i))
	}
	return append(b, unhex(t, v.Plain)...)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVectors checks the vectors of testdata/vectors/runlength.json.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("../testdata/vectors/runlength.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		EncodeExactly []vector `json:"encode_exactly"`
		DecodeErrors  []vector `json:"decode_errors"`
		DecodeOnly    []vector `json:"decode_only"`
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.EncodeExactly) == 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, v := range all.EncodeExactly {
		plain := v.plain(t)
		code := AppendEncode(nil, plain)
		if v.Coded != nil && !bytes.Equal(code, unhex(t, *v.Coded)) || v.Coded == nil && len(code) != v.CodedLen {
			t.Errorf("%s: code %x of %d bytes", v.Note, code, len(code))
		}
	}
	for _, v := range append(all.DecodeOnly, all.DecodeErrors...) {
		limit := 1 << 20
		if v.Limit != nil {
			limit = *v.Limit
		}
		plain := v.plain(t)
		got, err := AppendDecode([]byte("dst"), unhex(t, *v.Coded), limit)
		if string(got) != "dst"+string(plain) || (err == nil) != (len(plain) > 0) {
			t.Errorf("%s: got %x, %v", v.Note, got, err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		note  string
		code  []byte
		limit int
		want  error
	}{
		{"zero control", []byte{0}, 10, ErrZeroControl},
		{"zero control after a token", []byte{1, 7, 0}, 10, ErrZeroControl},
		{"run without its byte", []byte{5}, 10, ErrTruncated},
		{"literal without bytes", []byte{129}, 10, ErrTruncated},
		{"literal one short", []byte{131, 1, 2}, 10, ErrTruncated},
		{"longest literal one short", append([]byte{255}, make([]byte, 126)...), 1000, ErrTruncated},
		{"run over the limit", []byte{11, 0}, 10, ErrTooLong},
		{"second run over the limit", []byte{10, 0, 1, 0}, 10, ErrTooLong},
		{"literal over the limit", []byte{131, 1, 2, 3}, 2, ErrTooLong},
		{"nothing allowed", []byte{1, 0}, 0, ErrTooLong},
		{"less than nothing allowed", []byte{1, 0}, -1, ErrTooLong},
		{"just the limit", []byte{10, 0}, 10, nil},
		{"empty", nil, 0, nil},
		{"longest literal", append([]byte{255}, make([]byte, 127)...), 127, nil},
	} {
		if _, err := AppendDecode(nil, c.code, c.limit); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.note, err, c.want)
		}
	}
}

// TestNoAllocations covers slices with room for the result and no more, and a code of a larger
// output than the limit.
func TestNoAllocations(t *testing.T) {
	for name, src := range benchInputs() {
		code := make([]byte, 0, EncodedLen(src)) // room for the code and no more
		plain := make([]byte, 0, len(src))
		if n := allocs.PerRun(100, func() {
			coded := AppendEncode(code, src)
			got, err := AppendDecode(plain, coded, len(src))
			if err != nil || len(got) != len(src) || EncodedLen(src) != len(coded) {
				t.Fatalf("%s: %d bytes, %v", name, len(got), err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a run", name, n)
		}
	}
	bomb, dst := bytes.Repeat([]byte{128, 1}, 1000), make([]byte, 0, 256)
	if n := allocs.PerRun(10, func() { _, _ = AppendDecode(dst, bomb, cap(dst)) }); n != 0 {
		t.Errorf("%v allocations for an output over the limit", n)
	}
}

// benchInputs are the XOR of two frames that differ in 6 of 64 bytes, none at all, random bytes,
// and text-like bytes with many stretches of two.
func benchInputs() map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	sparse := make([]byte, 64)
	for _, i := range []int{3, 4, 17, 40, 41, 60} {
		sparse[i] = byte(i)
	}
	random := make([]byte, 1024)
	pairs := make([]byte, 1024)
	for i := range random {
		random[i] = byte(rng.Uint32())
		pairs[i] = byte(rng.Uint32() % 3)
	}
	return map[string][]byte{"sparse64": sparse, "zeros1024": make([]byte, 1024), "random1024": random, "pairs1024": pairs}
}
