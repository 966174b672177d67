package schema

import (
	"math"
	"testing"
)

var (
	nan      = math.NaN()
	infinity = math.Inf(1)
)

func number(v float64) *float64 { return &v }

func mustSchema(t testing.TB, fields ...Field) *Schema {
	t.Helper()
	s, err := New("Test", 60, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustCompile[T any](t testing.TB) *Type[T] {
	t.Helper()
	c, err := Compile[T]("Test", 60)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
