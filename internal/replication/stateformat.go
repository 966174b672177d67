package replication

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// atRest marks, in the descriptions of fields, the field that is above 0 while an object is at
// rest.
const atRest = " rest"

// Fields returns a description of each field of an object, for offers.
func Fields(s *schema.Schema) (fields []string) {
	for _, f := range s.Fields() {
		fields = append(fields, f.String())
	}
	return fields
}

// StateFormat is what both ends of a state stream derive from the same T.
type StateFormat struct {
	// Fields describes the fields of an object, for offers.
	Fields []string

	// Schema is that of the rows.
	Schema *snapshot.Schema

	source *schema.Schema
	rest   string // the field that is above 0 while an object is at rest, or ""
}

// StateFormatOf describes objects of type typ. The tags of T declare velocities; the tag
// statesync:"rest" marks the field that is above 0 while an object is at rest. An error names the
// field that is not supported.
func StateFormatOf[T any](typ *snapshot.Type[T]) (*StateFormat, error) {
	rest, err := restOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	f := &StateFormat{Fields: Fields(typ.Source()), Schema: typ.Schema(), source: typ.Source(), rest: rest}
	if rest != "" {
		i := slices.IndexFunc(f.source.Fields(), func(f schema.Field) bool { return f.Name == rest })
		if i < 0 {
			return nil, fmt.Errorf("field %q: statesync:\"rest\" on a field that is not sent", rest)
		}
		f.Fields[i] += atRest
	}
	_, err = f.NewReceiver(1) // whether a format is supported does not depend on the tick rate
	return f, err
}

// Config returns the settings that both ends share at tickHz ticks per second.
func (f *StateFormat) Config(tickHz float64) (statesync.Config, error) {
	source, err := f.source.AtRate(tickHz)
	if err != nil {
		return statesync.Config{}, err
	}
	return statesync.Config{Velocities: source.Velocities(), Rest: f.rest}, nil
}

// NewReceiver returns a receiver for tickHz ticks per second.
func (f *StateFormat) NewReceiver(tickHz float64) (*statesync.Receiver, error) {
	cfg, err := f.Config(tickHz)
	if err != nil {
		return nil, err
	}
	return statesync.NewReceiver(f.Schema, cfg)
}

// restOf returns the name of the field with the tag statesync:"rest", or "".
func restOf(t reflect.Type) (rest string, err error) {
	for i := range t.NumField() {
		f, name := t.Field(i), ""
		tag, ok := f.Tag.Lookup("statesync")
		switch {
		case ok && tag != "rest":
			return "", fmt.Errorf(`field %q: unknown tag statesync:%q, want "rest"`, f.Name, tag)
		case ok:
			name = f.Name
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			if name, err = restOf(f.Type); err != nil {
				return "", err
			}
		}
		if name != "" && rest != "" {
			return "", fmt.Errorf(`field %q: statesync:"rest" is on %q already`, name, rest)
		}
		rest += name
	}
	return rest, nil
}
