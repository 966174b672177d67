package rpcdelta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

// Limits of a schema.
const (
	// MaxFields is the most fields that a schema may have.
	MaxFields = 256
	// MaxComponents is the most integer components that its frames may have.
	MaxComponents = 1024
	// MaxBytes is the most bytes that all its byte strings may have together.
	MaxBytes = 16 << 10
	// MaxSchema is the most bytes that a schema file may have.
	MaxSchema = 192 << 10
)

// DefaultRate is the calls a second of a schema that declares no rate.
const DefaultRate = 60

// ErrSchema says that a frame does not have its schema's shape.
var ErrSchema = errors.New("rpcdelta: frame of another schema")

// Schema is the typed description of an RPC's arguments, checked and compiled.
// It is immutable: any number of encoders and decoders may share it.
type Schema struct {
	rpc       string
	rate      float64
	fields    []Field
	plans     []plan
	fixedBits int          // of FullBits, by fields whose size is always the same
	groups    []sizedGroup // of the other fields those that are groups
	varying   []int        // and the plans of the rest
	ints      int          // components
	blobs     int          // byte strings
	binary    int          // bytes of the binary part at most, before run-length coding
	bounds    []bounds     // by component

	models models
}

// NewSchema checks the fields and compiles them. rateHz is how often a second
// the RPC is called; 0 means [DefaultRate]. The error names the field that is
// wrong and how.
func NewSchema(rpc string, rateHz float64, fields []Field) (*Schema, error) {
	if rpc == "" {
		return nil, errors.New("rpcdelta: a schema needs the RPC's name")
	}
	if rateHz == 0 {
		rateHz = DefaultRate
	}
	if !(rateHz > 0 && rateHz <= 1000) {
		return nil, fmt.Errorf("rpcdelta: %s: rate %v Hz, want more than 0 and at most 1000", rpc, rateHz)
	}
	if len(fields) == 0 || len(fields) > MaxFields {
		return nil, fmt.Errorf("rpcdelta: %s: %d fields, want 1 to %d", rpc, len(fields), MaxFields)
	}
	s := &Schema{rpc: rpc, rate: rateHz, fields: slices.Clone(fields)}
	for i := range s.fields {
		if err := s.addPlan(&s.fields[i]); err != nil {
			return nil, fmt.Errorf("rpcdelta: %s: field %q: %w", rpc, s.fields[i].Name, err)
		}
	}
	if s.ints > MaxComponents {
		return nil, fmt.Errorf("rpcdelta: %s: %d components, want at most %d", rpc, s.ints, MaxComponents)
	}
	if s.binary > MaxBytes {
		return nil, fmt.Errorf("rpcdelta: %s: %d bytes of integers and byte strings, want at most %d", rpc, s.binary, MaxBytes)
	}
	for i := range s.fields {
		if err := s.checkVelocity(&s.fields[i]); err != nil {
			return nil, fmt.Errorf("rpcdelta: %s: field %q: %w", rpc, s.fields[i].Name, err)
		}
	}
	s.compileBounds()
	return s, nil
}

// schemaFile is the JSON of a schema file.
type schemaFile struct {
	RPC    string  `json:"rpc"`
	RateHz float64 `json:"rate_hz"`
	Fields []Field `json:"fields"`
}

// ParseSchema reads a schema file of at most [MaxSchema] bytes. Unknown members
// are errors, so that a misspelled option is not silently ignored.
func ParseSchema(data []byte) (*Schema, error) {
	if len(data) > MaxSchema {
		return nil, fmt.Errorf("rpcdelta: schema file: it is longer than %d bytes, which is the limit", MaxSchema)
	}
	var f schemaFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("rpcdelta: schema file: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("rpcdelta: schema file: something follows the closing brace")
	}
	return NewSchema(f.RPC, f.RateHz, f.Fields)
}

// AtRate is the schema of the same RPC called at another rate.
func (s *Schema) AtRate(hz float64) (*Schema, error) {
	if hz == s.rate {
		return s, nil
	}
	return NewSchema(s.rpc, hz, s.fields)
}

// AppendJSON appends the schema as a schema file.
func (s *Schema) AppendJSON(dst []byte) ([]byte, error) {
	fields := slices.Clone(s.fields)
	for i := range fields {
		if fields[i].VelocityScale == 1 {
			fields[i].VelocityScale = 0 // the default
		}
	}
	b, err := json.MarshalIndent(schemaFile{s.rpc, s.rate, fields}, "", "  ")
	return append(dst, b...), err
}

// RPC is the call's name.
func (s *Schema) RPC() string { return s.rpc }

// RateHz is how often a second the RPC is called.
func (s *Schema) RateHz() float64 { return s.rate }

// Fields gives the fields with their defaults filled in. The slice is the
// schema's own: read it only.
func (s *Schema) Fields() []Field { return s.fields }

// Components is the number of integers of a frame.
func (s *Schema) Components() int { return s.ints }

// Fingerprint is a hash of the fields and of all that decides their bits on the
// wire: equal for schemas that can talk to each other, different (but for one
// chance in 2^64) for others. The rate, which the sender declares, is no part
// of it.
func (s *Schema) Fingerprint() uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.rpc))
	for _, f := range s.fields {
		h.Write([]byte("\n" + f.String()))
	}
	return h.Sum64()
}

// checkVelocity checks the link from a field to its rate of change.
func (s *Schema) checkVelocity(f *Field) error {
	if f.VelocityScale == 0 {
		f.VelocityScale = 1
	}
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
		if k, _ := to.Kind.class(); k != classGroup || to.Kind == KindUnitVec || to.Values() != want {
			return fmt.Errorf("velocity %q is %s of %d, want a vec or scalar of %d", from.Velocity, to.Kind, to.Values(), want)
		}
		from = to
	}
	return nil
}

func (s *Schema) field(name string) *Field {
	for i := range s.fields {
		if s.fields[i].Name == name {
			return &s.fields[i]
		}
	}
	return nil
}
