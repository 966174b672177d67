// Package protocol has the words of the conformance protocol, docs/spec/conformance.md.
package protocol

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// Version is the version of the protocol, Max the maximum size of a line in bytes.
const (
	Version = 1
	Max     = 1 << 20
)

// The layers, in the order of reports.
const (
	Values    = "values"
	RLE       = "rle"
	Adaptive  = "adaptive"
	Acks      = "acks"
	Session   = "session"
	Snapshots = "snapshots"
	Areas     = "areas"
	State     = "state"
)

// Layers returns all layers.
func Layers() []string {
	return []string{Values, RLE, Adaptive, Acks, Session, Snapshots, Areas, State}
}

// reasons are the words for the reasons of a decoder.
var reasons = []struct {
	word string
	errs []error
}{
	{"late", []error{rpcdelta.ErrLate, snapshot.ErrLate}},
	{"duplicate", []error{rpcdelta.ErrDuplicate}},
	{"baseline", []error{rpcdelta.ErrBaselineMissing, snapshot.ErrBaselineMissing}},
	{"desync", []error{rpcdelta.ErrDesync, snapshot.ErrDesync}},
	{"malformed", []error{rpcdelta.ErrMalformed, snapshot.ErrMalformed}},
}

// Reason returns the word for the reason of a decoder's error, or "" if it has none.
func Reason(err error) string {
	for _, r := range reasons {
		for _, target := range r.errs {
			if errors.Is(err, target) {
				return r.word
			}
		}
	}
	return ""
}

// Bytes returns the word for b.
func Bytes(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

// ParseBytes parses a word of [Bytes].
func ParseBytes(word string) ([]byte, error) {
	if word == "-" {
		return nil, nil
	}
	b, err := hex.DecodeString(word)
	if err != nil {
		return nil, fmt.Errorf("bytes %.40q: %w", word, err)
	}
	return b, nil
}

// Ints returns the word for integers.
func Ints[T int32 | int64](v []T) string {
	if len(v) == 0 {
		return "-"
	}
	b := make([]byte, 0, 8*len(v))
	for i, c := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return string(b)
}

// ParseInts parses a word of [Ints].
func ParseInts[T int32 | int64](word string, bits int) ([]T, error) {
	if word == "-" {
		return nil, nil
	}
	var out []T
	for part := range strings.SplitSeq(word, ",") {
		n, err := strconv.ParseInt(part, 10, bits)
		if err != nil {
			return nil, fmt.Errorf("number %.40q: %w", part, err)
		}
		out = append(out, T(n))
	}
	return out, nil
}

// Frame returns the word for a frame.
func Frame(f *schema.Frame) string {
	parts := make([]string, 0, len(f.Ints)+len(f.Bytes))
	for _, c := range f.Ints {
		parts = append(parts, strconv.Itoa(int(c)))
	}
	for _, b := range f.Bytes {
		parts = append(parts, "x"+hex.EncodeToString(b))
	}
	return strings.Join(parts, ",")
}

// ParseFrame parses a word of [Frame].
func ParseFrame(s *schema.Schema, word string) (*schema.Frame, error) {
	f, parts := s.NewFrame(), strings.Split(word, ",")
	if len(parts) != len(f.Ints)+len(f.Bytes) {
		return nil, fmt.Errorf("a frame of %d parts, want %d", len(parts), len(f.Ints)+len(f.Bytes))
	}
	for i, part := range parts {
		if i < len(f.Ints) {
			n, err := strconv.ParseInt(part, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("component %d: %w", i, err)
			}
			f.Ints[i] = int32(n)
			continue
		}
		b, err := parseBlob(part)
		if err != nil {
			return nil, err
		}
		f.Bytes[i-len(f.Ints)] = b
	}
	return f, s.Check(f)
}

func parseBlob(word string) ([]byte, error) {
	text, ok := strings.CutPrefix(word, "x")
	b, err := hex.DecodeString(text)
	if !ok || err != nil {
		return nil, fmt.Errorf("byte string %.40q, want x and hexadecimal digits", word)
	}
	return b, nil
}

// ValuesOf returns the word for the values of a frame.
func ValuesOf(s *schema.Schema, f *schema.Frame) string {
	var parts []string
	for i, field := range s.Fields() {
		class, _ := field.Kind.Class()
		switch {
		case field.IsBytes():
			parts = append(parts, "x"+hex.EncodeToString(s.BytesOf(f, i)))
		case class != schema.ClassInteger:
			for _, v := range s.RestoreField(nil, f, i) {
				parts = append(parts, Double(v))
			}
		case field.Kind == schema.KindInt:
			for k := range field.Values() {
				parts = append(parts, strconv.FormatInt(s.Int(f, i, k), 10))
			}
		default:
			for k := range field.Values() {
				parts = append(parts, strconv.FormatUint(s.Uint(f, i, k), 10))
			}
		}
	}
	return strings.Join(parts, ",")
}

// Double returns the digits for a value.
func Double(v float64) string { return fmt.Sprintf("%016x", math.Float64bits(v)) }

// ParseDouble parses the digits of a value.
func ParseDouble(word string) (float64, error) {
	n, err := strconv.ParseUint(word, 16, 64)
	if err != nil || len(word) != 16 {
		return 0, fmt.Errorf("value %.40q, want 16 hexadecimal digits", word)
	}
	return math.Float64frombits(n), nil
}

// Quantize quantizes a word of [ValuesOf]. A value that a field cannot hold is a
// *schema.RangeError.
func Quantize(s *schema.Schema, word string) (*schema.Frame, error) {
	f, parts := s.NewFrame(), strings.Split(word, ",")
	for i, field := range s.Fields() {
		n := field.Values()
		if len(parts) < n {
			return nil, fmt.Errorf("too few values: field %s has %d", field.Name, n)
		}
		if err := quantizeField(s, f, i, &field, parts[:n]); err != nil {
			return nil, fmt.Errorf("field %s: %w", field.Name, err)
		}
		parts = parts[n:]
	}
	if len(parts) != 0 {
		return nil, fmt.Errorf("%d values too many", len(parts))
	}
	return f, nil
}

func quantizeField(s *schema.Schema, f *schema.Frame, i int, field *schema.Field, parts []string) error {
	class, _ := field.Kind.Class()
	switch {
	case field.IsBytes():
		b, err := parseBlob(parts[0])
		if err != nil {
			return err
		}
		return s.SetBytes(f, i, b)
	case class != schema.ClassInteger:
		values := make([]float64, len(parts))
		for k, part := range parts {
			v, err := ParseDouble(part)
			if err != nil {
				return err
			}
			values[k] = v
		}
		return s.QuantizeField(f, i, values)
	}
	for k, part := range parts {
		if field.Kind == schema.KindInt {
			v, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return err
			}
			if err := s.SetInt(f, i, k, v); err != nil {
				return err
			}
			continue
		}
		v, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return err
		}
		if err := s.SetUint(f, i, k, v); err != nil {
			return err
		}
	}
	return nil
}

// Field returns the words for a field: its name, its kind and its options.
func Field(f *schema.Field) []string {
	words := []string{f.Name, string(f.Kind)}
	add := func(name string, v float64) {
		if v != 0 {
			words = append(words, name+"="+strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	add("count", float64(f.Count))
	add("resolution", f.Resolution)
	add("bits", float64(f.Bits))
	if f.Kind != schema.KindBool {
		add("width", float64(f.Width))
	}
	add("size", float64(f.Size))
	for _, bound := range []struct {
		name string
		v    *float64
	}{{"min", f.Min}, {"max", f.Max}} {
		if bound.v != nil {
			words = append(words, bound.name+"="+strconv.FormatFloat(*bound.v, 'g', -1, 64))
		}
	}
	if f.Velocity != "" {
		words = append(words, "velocity="+f.Velocity)
	}
	add("velocity_scale", f.VelocityScale)
	return words
}

// ParseField parses words of [Field].
func ParseField(words []string) (schema.Field, error) {
	f := schema.Field{Name: words[0], Kind: schema.Kind(words[1])}
	for _, word := range words[2:] {
		name, text, _ := strings.Cut(word, "=")
		if name == "velocity" {
			f.Velocity = text
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return f, fmt.Errorf("option %.60q: %w", word, err)
		}
		switch name {
		case "count":
			f.Count = int(v)
		case "resolution":
			f.Resolution = v
		case "bits":
			f.Bits = int(v)
		case "width":
			f.Width = int(v)
		case "size":
			f.Size = int(v)
		case "min":
			f.Min = &v
		case "max":
			f.Max = &v
		case "velocity_scale":
			f.VelocityScale = v
		default:
			return f, fmt.Errorf("option %.60q is unknown", word)
		}
	}
	return f, nil
}

// ParseSuite returns the suite with a name of its method String.
func ParseSuite(name string) (transport.Suite, error) {
	for s := transport.Suite(0); s.Valid(); s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("suite %.40q is unknown", name)
}
