package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Limits of a schema.
const (
	// MaxFields is the maximum number of fields of a schema.
	MaxFields = 256
	// MaxComponents is the maximum number of integer components of a frame.
	MaxComponents = 1024
	// MaxBytes is the maximum size in bytes of all integers and byte strings of a frame.
	MaxBytes = 16 << 10
	// MaxFile is the maximum size of a schema file in bytes.
	MaxFile = 192 << 10
)

// DefaultRate is the rate of a schema that declares none, in calls per second.
const DefaultRate = 60

// Schema describes the fields of an RPC or of a replicated object. It is immutable and safe for
// concurrent use.
type Schema struct {
	rpc        string
	rate       float64
	fields     []Field
	layouts    []Layout
	ints       int      // number of components
	blobs      int      // byte strings
	binary     int      // maximum bytes of all integers and byte strings
	bounds     []bounds // range of each component
	velocities []Velocity
	derived    sync.Map // see Derived
}

// New returns the schema of RPC rpc with the given fields. rateHz is the expected number of calls
// per second, at most 1000; 0 means [DefaultRate]. The error names the invalid field.
func New(rpc string, rateHz float64, fields []Field) (*Schema, error) {
	if rpc == "" {
		return nil, errors.New("schema: a schema needs the RPC's name")
	}
	if rateHz = cmp.Or(rateHz, DefaultRate); !(rateHz > 0 && rateHz <= 1000) {
		return nil, fmt.Errorf("schema: %s: rate %v Hz, want more than 0 and at most 1000", rpc, rateHz)
	}
	if len(fields) == 0 || len(fields) > MaxFields {
		return nil, fmt.Errorf("schema: %s: %d fields, want 1 to %d", rpc, len(fields), MaxFields)
	}
	s := &Schema{rpc: rpc, rate: rateHz, fields: slices.Clone(fields)}
	for i := range s.fields {
		if err := s.addLayout(&s.fields[i]); err != nil {
			return nil, fmt.Errorf("schema: %s: field %q: %w", rpc, s.fields[i].Name, err)
		}
	}
	if s.ints > MaxComponents {
		return nil, fmt.Errorf("schema: %s: %d components, want at most %d", rpc, s.ints, MaxComponents)
	}
	if s.binary > MaxBytes {
		return nil, fmt.Errorf("schema: %s: %d bytes of integers and byte strings, want at most %d", rpc, s.binary, MaxBytes)
	}
	for i := range s.fields {
		if err := s.checkVelocity(&s.fields[i]); err != nil {
			return nil, fmt.Errorf("schema: %s: field %q: %w", rpc, s.fields[i].Name, err)
		}
	}
	s.compileBounds()
	s.addVelocities()
	return s, nil
}

// schemaFile is the content of a schema file, in JSON.
type schemaFile struct {
	RPC    string  `json:"rpc"`
	RateHz float64 `json:"rate_hz"`
	Fields []Field `json:"fields"`
}

// Parse parses a schema file. An unknown member is an error.
func Parse(data []byte) (*Schema, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("schema: the file has %d bytes, want at most %d", len(data), MaxFile)
	}
	var f schemaFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	switch err := d.Decode(&f); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("schema: the file is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("schema: the file ends before its closing brace")
	case err != nil:
		return nil, &fileError{err}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("schema: something follows the closing brace of the file")
	}
	return New(f.RPC, f.RateHz, f.Fields)
}

// fileError wraps an error of package json in the terms of schema files instead of Go.
type fileError struct{ cause error }

func (e *fileError) Unwrap() error { return e.cause }

func (e *fileError) Error() string {
	text := strings.TrimPrefix(e.cause.Error(), "json: ")
	if t, ok := errors.AsType[*json.UnmarshalTypeError](e.cause); ok {
		want := t.Type.Kind().String()
		switch t.Type.Kind() {
		case reflect.Struct:
			want = "object"
		case reflect.Slice:
			want = "array"
		case reflect.Bool:
			want = "true or false"
		case reflect.Float64:
			want = "number"
		case reflect.Int:
			want = "whole number"
		default:
		}
		text = fmt.Sprintf("%s has the type %s, want %s", cmp.Or(t.Field, "the file"), t.Value, want)
	}
	return "schema: not a schema in JSON: " + text
}

// AtRate returns a schema with the same fields and the rate hz.
func (s *Schema) AtRate(hz float64) (*Schema, error) {
	if hz == s.rate {
		return s, nil
	}
	return New(s.rpc, hz, s.fields)
}

// AppendJSON appends the schema as a schema file and returns the extended slice.
func (s *Schema) AppendJSON(dst []byte) ([]byte, error) {
	fields := slices.Clone(s.fields)
	for i := range fields {
		if fields[i].VelocityScale == 1 {
			fields[i].VelocityScale = 0 // the default, omitted
		}
	}
	b, err := json.MarshalIndent(schemaFile{s.rpc, s.rate, fields}, "", "  ")
	return append(dst, b...), err
}

// RPC returns the name of the RPC or object.
func (s *Schema) RPC() string { return s.rpc }

// RateHz returns the expected number of calls per second.
func (s *Schema) RateHz() float64 { return s.rate }

// Fields returns the fields with their defaults set. The caller must not modify the slice.
func (s *Schema) Fields() []Field { return s.fields }

// Components returns the number of integers of a frame.
func (s *Schema) Components() int { return s.ints }

// Strings returns the number of byte strings of a frame.
func (s *Schema) Strings() int { return s.blobs }

// BinaryBytes returns the maximum size in bytes of all integers and byte strings of a frame,
// including the lengths of the byte strings as varints.
func (s *Schema) BinaryBytes() int { return s.binary }

// Layouts returns the layout of each field, in field order. The caller must not modify the slice.
func (s *Schema) Layouts() []Layout { return s.layouts }

// Derived returns the value that build returned at the first call with this key. Codecs use it to
// cache the tables that they derive from a schema. It is safe for concurrent use: concurrent first
// calls may each call build, but all return the same value.
func (s *Schema) Derived(key any, build func(*Schema) any) any {
	if v, ok := s.derived.Load(key); ok {
		return v
	}
	v, _ := s.derived.LoadOrStore(key, build(s))
	return v
}

// Fingerprint returns a 64-bit FNV-1a hash of the name of the RPC and of [Field.String] of each
// field. Two ends with equal fingerprints use the same wire format. It does not cover the rate,
// which the sender declares.
func (s *Schema) Fingerprint() uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.rpc))
	for _, f := range s.fields {
		h.Write([]byte("\n" + f.String()))
	}
	return h.Sum64()
}

// checkVelocity checks the options velocity and velocity_scale of f, and sets the default of the
// latter.
func (s *Schema) checkVelocity(f *Field) error {
	f.VelocityScale = cmp.Or(f.VelocityScale, 1)
	if math.IsNaN(f.VelocityScale) || math.IsInf(f.VelocityScale, 0) {
		return fmt.Errorf("velocity_scale %v is not a number", f.VelocityScale)
	}
	seen := map[string]bool{f.Name: true}
	for from := f; from.Velocity != ""; {
		to := s.field(from.Velocity)
		if to == nil {
			return fmt.Errorf("velocity %q is no field of this RPC", from.Velocity)
		}
		if seen[to.Name] {
			return fmt.Errorf("velocity %q leads back to %q", f.Velocity, to.Name)
		}
		seen[to.Name] = true
		want := from.Values()
		if from.Kind == KindQuat {
			want = 3
		}
		if k, _ := to.Kind.Class(); k != ClassNumber || to.Kind == KindUnitVec || to.Values() != want {
			return fmt.Errorf("velocity %q is %s of %d, want a vec or scalar of %d", from.Velocity, to.Kind, to.Values(), want)
		}
		from = to
	}
	return nil
}

func (s *Schema) field(name string) *Field {
	if i := slices.IndexFunc(s.fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return &s.fields[i]
	}
	return nil
}

// NewFrames returns n frames whose components share one array. All components are 0 and all byte
// strings are nil; see [Schema.Zero].
func (s *Schema) NewFrames(n int) []Frame {
	frames := make([]Frame, n)
	ints := make([]int32, n*s.ints)
	strs := make([][]byte, n*s.blobs)
	for i := range frames {
		frames[i].Ints = ints[i*s.ints : (i+1)*s.ints : (i+1)*s.ints]
		frames[i].Bytes = strs[i*s.blobs : (i+1)*s.blobs : (i+1)*s.blobs]
	}
	return frames
}

// NewFrame returns a frame with every component 0 and every byte string at its minimum length.
func (s *Schema) NewFrame() *Frame {
	f := &s.NewFrames(1)[0]
	s.Zero(f)
	return f
}

// Zero sets every component of f to 0 and every byte string to zeros of its minimum length.
func (s *Schema) Zero(f *Frame) {
	clear(f.Ints)
	for i := range s.layouts {
		if p := &s.layouts[i]; p.Class == ClassBytes {
			f.Bytes[p.Blob] = append(f.Bytes[p.Blob][:0], make([]byte, p.MinBytes)...)
		}
	}
}

// bounds is the range of a component: its minimum, and the difference of maximum and minimum.
type bounds struct {
	lo   int32
	span uint32
}

func (s *Schema) compileBounds() {
	for i := range s.layouts {
		p := &s.layouts[i]
		for k := range p.N {
			lo, hi := p.ComponentRange(k)
			s.bounds = append(s.bounds, bounds{int32(lo), uint32(hi - lo)})
		}
	}
}

// Check returns an error if f is not a frame of the schema: [ErrFrame] if its shape differs, a
// [*RangeError] if a component or the length of a byte string is out of range.
func (s *Schema) Check(f *Frame) error {
	if len(f.Ints) != s.ints || len(f.Bytes) != s.blobs {
		return fmt.Errorf("%w: %s has %d components and %d byte strings, the frame %d and %d",
			ErrFrame, s.rpc, s.ints, s.blobs, len(f.Ints), len(f.Bytes))
	}
	bounds := s.bounds[:len(f.Ints)]
	beyond := int64(0) // negative if a component is out of range
	for i, v := range f.Ints {
		b := &bounds[i]
		beyond |= int64(b.span) - int64(uint32(v-b.lo))
	}
	if beyond >= 0 && s.blobs == 0 {
		return nil
	}
	for i := range s.layouts {
		p := &s.layouts[i]
		if p.Class == ClassBytes {
			if n := len(f.Bytes[p.Blob]); beyond >= 0 && (n < p.MinBytes || n > p.MaxBytes) {
				return s.rangeError(p.Field, fmt.Sprintf("%d bytes", n), p.bytesLimit())
			}
			continue
		}
		if beyond >= 0 {
			continue
		}
		for k, v := range f.Ints[p.At:][:p.N] {
			if !p.Holds(k, v) {
				return s.rangeError(p.Field, v, p.componentLimit(k))
			}
		}
	}
	return nil
}

// addLayout checks f, sets its defaults and appends its layout.
func (s *Schema) addLayout(f *Field) error {
	if f.Name == "" {
		return errors.New("a field needs a name")
	}
	if s.field(f.Name) != f {
		return errors.New("the name is used twice")
	}
	c, ok := f.Kind.Class()
	if !ok {
		return fmt.Errorf("unknown kind %q", f.Kind)
	}
	if err := f.fillCount(); err != nil {
		return err
	}
	if err := f.checkOptions(c); err != nil {
		return err
	}
	p := Layout{Field: f, Class: c, At: s.ints, N: f.Values(), fieldValues: f.Values()}
	var err error
	switch {
	case f.Kind == KindUnitVec:
		p.N = 2
		err = p.compileUnit()
	case c == ClassNumber:
		err = p.compileGroup()
	case c == ClassAngle:
		err = p.compileAngle()
	case c == ClassQuat:
		err = p.compileUnit()
	case c == ClassInteger:
		err = p.compileBinary()
		s.binary += p.Values() * p.ValueBytes()
	default:
		err = p.compileBlob()
		p.N, p.Blob = 0, s.blobs
		s.blobs++
		s.binary += p.MaxBytes + p.LengthBytes()
	}
	s.ints += p.N
	s.layouts = append(s.layouts, p)
	return err
}

// Velocities returns the velocities that the fields declare, for a simulation of s.RateHz() ticks
// per second. The caller must not modify the slice.
func (s *Schema) Velocities() []Velocity { return s.velocities }

// PerTick returns [Velocity.PerTick] of each of s.Velocities.
func (s *Schema) PerTick() (factors []int64) {
	for _, v := range s.velocities {
		factors = append(factors, v.PerTick)
	}
	return factors
}

// WithPerTick returns a schema with the same fields, the rate hz, and the given [Velocity.PerTick]
// of each of s.Velocities, which the other end computed.
func (s *Schema) WithPerTick(hz float64, factors []int64) (*Schema, error) {
	if len(factors) != len(s.velocities) {
		return nil, fmt.Errorf("schema: %s: %d factors of velocities, want %d", s.rpc, len(factors), len(s.velocities))
	}
	out, err := New(s.rpc, hz, s.fields)
	if err != nil {
		return nil, err
	}
	for i, f := range factors {
		if f < -MaxPerTick || f > MaxPerTick {
			return nil, fmt.Errorf("schema: %s: velocity of field %q: factor %d, want at most %d", s.rpc, out.velocities[i].Field, f, int64(MaxPerTick))
		}
		out.velocities[i].PerTick = f
	}
	return out, nil
}

// addVelocities computes the velocities of all fields, which are valid.
func (s *Schema) addVelocities() {
	for i := range s.fields {
		f := &s.fields[i]
		if f.Velocity == "" {
			continue
		}
		v := Velocity{Field: f.Name, Of: f.Velocity}
		perTick := s.field(f.Velocity).Resolution * f.VelocityScale / s.rate
		if f.Kind == KindQuat {
			v.PerTick = RadiansPerTick(perTick)
		} else {
			v.PerTick = StepsPerTick(perTick / f.Resolution)
		}
		s.velocities = append(s.velocities, v)
	}
}
