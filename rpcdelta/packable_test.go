package rpcdelta

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

type busy struct {
	Next   *busy
	Fields map[string][]struct{ Done chan<- bool }
}

// sealed says itself what it is, so that what is in it does not matter.
type sealed struct{ Done chan bool }

func (s *sealed) MarshalText() ([]byte, error) { return []byte("sealed"), nil }
func (s *sealed) UnmarshalText(_ []byte) error { return nil }

// TestUnpackable: a type that has no form in msgpack fails at once, however deep
// it lies, not at the first call that has a value of it.
func TestUnpackable(t *testing.T) {
	compile := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		`field "V": type []func(): func() has no form`: compile(Compile[struct {
			V []func() `rpcdelta:"max=9"`
		}]("Test", 0)),
		`type map[string]chan int: chan int has no form`: compile(Compile[struct {
			V map[string]chan int `rpcdelta:"max=9"`
		}]("Test", 0)),
		`complex128 has no form`: compile(Compile[struct {
			V []complex128 `rpcdelta:"max=9"`
		}]("Test", 0)),
		`type *rpcdelta.busy: Fields: Done: chan<- bool has no form`: compile(Compile[struct {
			V *busy `rpcdelta:"max=9"`
		}]("Test", 0)),
		`type [2]rpcdelta.busy: Fields: Done: chan<- bool has no form in m`: compile(Compile[struct {
			V [2]busy `rpcdelta:"max=9"`
		}]("Test", 0)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	type fine struct {
		Sealed  []sealed         `rpcdelta:"max=90"`
		Times   []time.Time      `rpcdelta:"max=90"`
		Anys    map[int]any      `rpcdelta:"max=90"`
		Tree    *part            `rpcdelta:"max=90"`
		URLs    map[int]*url.URL `rpcdelta:"max=90"`
		Skipped []struct {
			Done chan bool `msgpack:"-"`
			done chan bool
		} `rpcdelta:"max=90"`
	}
	c := mustCompile[fine](t)
	if err := c.Quantize(c.Schema().NewFrame(), &fine{Sealed: []sealed{{}}, Anys: map[int]any{1: 2}}); err != nil {
		t.Error(err)
	}
}
