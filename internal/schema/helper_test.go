package schema

import (
	"math"
	"testing"
)

var (
	nan      = math.NaN()
	infinity = math.Inf(1)
)

// must fails a test if there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustSchema(t testing.TB, fields ...Field) *Schema {
	t.Helper()
	s, err := New("Test", 60, fields)
	must(t, err)
	return s
}

func mustCompile[T any](t testing.TB) *Type[T] {
	t.Helper()
	c, err := Compile[T]("Test", 60)
	must(t, err)
	return c
}
