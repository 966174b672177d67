package snapshot

import (
	_ "embed"
	"sync"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// priorBytes is the model of simulated cubes from which the models of all schemas are derived. It
// was written by TestTrain.
//
//go:embed snapshots.prior
var priorBytes []byte

// priorSchema returns the schema of the objects on which the built-in model was trained: an
// orientation, a position, a velocity, and an integer.
func priorSchema() *Schema {
	s, err := NewSchema(
		Field{Name: "Orientation", Class: schema.ClassQuat, N: 4, Hi: 1<<9 - 1},
		Field{Name: "Position", Class: schema.ClassNumber, N: 3, Lo: -1 << 17, Hi: 1<<17 - 1},
		Field{Name: "Velocity", Class: schema.ClassNumber, N: 3, Lo: -1 << 13, Hi: 1<<13 - 1},
		Field{Name: "Interacting", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	if err != nil {
		panic(err)
	}
	return s
}

// prior returns the built-in model and its schema, or a nil model if the embedded model does not
// match the schema.
var prior = sync.OnceValues(func() (*modelSet, *Schema) {
	s := priorSchema()
	m, err := parseModel(priorBytes, s)
	if err != nil {
		return nil, s
	}
	return m, s
})

// defaultModel derives the model for objects of schema s from the built-in one: each field starts
// with the parameters of the first field of its class, and each number other than the position with
// those of the velocity.
func defaultModel(s *Schema) *modelSet {
	s.built.Do(func() {
		s.builtIn = newModel(s)
		from, fs := prior()
		if from == nil {
			return
		}
		for i, m := range s.builtIn.models {
			m.derive(s, from.models[i], fs)
		}
	})
	return s.builtIn
}
