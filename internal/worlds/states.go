package worlds

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// StateCodec is the name of state synchronization in offers.
const StateCodec = "state"

// atRest is what the description of the field says that is above 0 while an object rests.
const atRest = " rest"

// States is what both ends of a state stream make of the same T: neither can configure what the other does not know.
type States struct {
	Schema *snapshot.Schema
	Fields []string         // as offers describe them
	Config statesync.Config // what both ends share of it
}

// StatesOf describes a T at so many ticks a second: its velocities by its tags, and the field with the tag
// statesync:"rest". An error names what cannot be carried.
func StatesOf[T any](name string, tickHz float64) (*States, error) {
	q, err := statesync.NewQuantizer[T](name, tickHz)
	if err != nil {
		return nil, err
	}
	typ, err := schema.Compile[T](name, tickHz)
	if err != nil {
		return nil, err
	}
	s := &States{Schema: q.Schema(), Fields: Fields(typ.Schema()), Config: statesync.Config{Velocities: q.Velocities()}}
	if s.Config.Rest, err = restOf(reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	if s.Config.Rest != "" {
		i := slices.IndexFunc(typ.Schema().Fields(), func(f schema.Field) bool { return f.Name == s.Config.Rest })
		if i < 0 {
			return nil, fmt.Errorf("field %q: statesync:\"rest\" on a field that is not sent", s.Config.Rest)
		}
		s.Fields[i] += atRest
	}
	_, err = statesync.NewSender(s.Schema, s.Config)
	return s, err
}

// restOf gives the name of the field that says that an object rests, or none.
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
