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

// atRest marks, in the descriptions of fields, the field that is above 0 while an object is at rest.
const atRest = " rest"

// States is what both ends of a state stream derive from the same T.
type States struct {
	Schema *snapshot.Schema
	Fields []string         // as in offers
	Config statesync.Config // settings that both ends share
}

// StatesOf describes objects of type typ at tickHz ticks per second. The tags of T declare velocities;
// the tag statesync:"rest" marks the field that is above 0 while an object is at rest. An error names
// the field that is not supported.
func StatesOf[T any](typ *snapshot.Type[T], tickHz float64) (*States, error) {
	source, err := typ.Source().AtRate(tickHz)
	if err != nil {
		return nil, err
	}
	velocities, err := source.Velocities()
	if err != nil {
		return nil, err
	}
	s := &States{Schema: typ.Schema(), Fields: Fields(source), Config: statesync.Config{Velocities: velocities}}
	if s.Config.Rest, err = restOf(reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	if s.Config.Rest != "" {
		i := slices.IndexFunc(source.Fields(), func(f schema.Field) bool { return f.Name == s.Config.Rest })
		if i < 0 {
			return nil, fmt.Errorf("field %q: statesync:\"rest\" on a field that is not sent", s.Config.Rest)
		}
		s.Fields[i] += atRest
	}
	_, err = statesync.NewSender(s.Schema, s.Config)
	return s, err
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
