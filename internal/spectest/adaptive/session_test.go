package adaptive

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// session is a file testdata/vectors/adaptive_*.json, see the README there.
type session struct {
	Schema  json.RawMessage           `json:"schema"`
	Factors struct{ Factors []int64 } `json:"velocity_factors"`
	Ring    int64                     `json:"ring"`
	Frames  []struct {
		Ints  []int64
		Bytes []string
	} `json:"frames"`
	Events []event `json:"events"`
}

type event struct {
	Learn   *int64
	Frames  int64
	Repeats bool
	Hash    string
	Newest  int64
	Base    *int64
	Free    uint
	Payload *string
	Steps   []struct{ Ops [][]any }
}

// TestSessions decodes the payloads of the vectors and learns their frames.
func TestSessions(t *testing.T) {
	var tab tables
	readJSON(t, "docs/spec/tables/adaptive.json", &tab)
	paths, err := filepath.Glob("../../../testdata/vectors/adaptive_*.json")
	if err != nil || len(paths) < 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var s session
			readJSON(t, "testdata/vectors/"+filepath.Base(path), &s)
			s.play(t, &tab)
		})
	}
}

func (s *session) play(t *testing.T, tab *tables) {
	m := newModel(t, tab, s.Schema, s.Factors.Factors)
	var frames []*frame
	for _, v := range s.Frames {
		f := &frame{ints: v.Ints}
		for _, b := range v.Bytes {
			f.bytes = append(f.bytes, unhex(t, b))
		}
		frames = append(frames, f)
	}
	e := &stream{m: m, state: newState(m), start: newState(m), known: map[int64]*frame{}, ring: s.Ring}
	payloads := 0
	for i, v := range s.Events {
		if v.Payload != nil {
			if err := e.check(t, &v, frames); err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
			payloads++
			continue
		}
		if v.Learn != nil {
			e.known[*v.Learn] = frames[*v.Learn]
			e.learnFrame(*v.Learn, v.Frames, v.Repeats)
		}
		if got := e.state.hash(); got != v.Hash {
			t.Fatalf("event %d: the state's hash is %s, want %s", i, got, v.Hash)
		}
	}
	if payloads < 10 {
		t.Errorf("%d payloads", payloads)
	}
}

// check decodes the payload of an event and compares its frames and operations.
func (e *stream) check(t *testing.T, v *event, frames []*frame) error {
	d, base := newCoder(unhex(t, *v.Payload), v.Free), int64(-1)
	if v.Base != nil {
		base = *v.Base
	}
	got, repeats := e.decode(d, v.Newest, base)
	if len(v.Steps) > 0 {
		if want := v.operations(); !slices.Equal(d.ops, want) {
			return fmt.Errorf("operations are\n%v, want\n%v", d.ops, want)
		}
	}
	if !d.complete() {
		return fmt.Errorf("malformed")
	}
	want := frames[v.Newest+1-v.Frames : v.Newest+1]
	if repeats != v.Repeats || len(got) != len(want) {
		return fmt.Errorf("%d frames, repeats %t; want %d, %t", len(got), repeats, len(want), v.Repeats)
	}
	for i, f := range got {
		if !slices.Equal(f.ints, want[i].ints) || !slices.EqualFunc(f.bytes, want[i].bytes, slices.Equal) {
			return fmt.Errorf("frame %d is %v, want %v", i, f, want[i])
		}
	}
	d = newCoder(append(unhex(t, *v.Payload), 1), v.Free)
	if more, _ := e.decode(d, v.Newest, base); d.complete() && reflect.DeepEqual(more, got) {
		return fmt.Errorf("a byte more is accepted")
	}
	return nil
}

func (v *event) operations() (all [][4]int64) {
	kinds := map[string]int64{"bit": opBit, "raw": opRaw, "symbol": opSymbol}
	for _, s := range v.Steps {
		for _, op := range s.Ops {
			x := [4]int64{kinds[op[0].(string)]}
			for i, n := range op[1:] {
				x[1+i] = int64(n.(float64))
			}
			all = append(all, x)
		}
	}
	return all
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOrientations compares the arithmetic of section 11 with the vectors.
func TestOrientations(t *testing.T) {
	var tab tables
	readJSON(t, "docs/spec/tables/adaptive.json", &tab)
	var v struct {
		Orientations []struct {
			A, B     []int64
			Bits     int64
			Index    int64
			Rate     int64
			V        [3]int64
			UnpackA  quat     `json:"unpacked_a"`
			UnpackB  quat     `json:"unpacked_b"`
			Product  quat     `json:"product_ab"`
			Exp      quat     `json:"exp_v"`
			Extended quat     `json:"extended_ab"`
			Smallest [3]int64 `json:"smallest_of_exp_v_times_b"`
		}
	}
	readJSON(t, "testdata/vectors/adaptive.json", &v)
	m := &model{t: &tab}
	for i, o := range v.Orientations {
		limit := int64(1)<<(o.Bits-1) - 1
		a, b := m.unpack(o.A, limit), m.unpack(o.B, limit)
		e := exp(o.V)
		got := []any{a, b, product(a, b), e, extended(a, b, o.Rate), smallest(product(e, b), o.Index, limit)}
		if want := []any{o.UnpackA, o.UnpackB, o.Product, o.Exp, o.Extended, o.Smallest}; !reflect.DeepEqual(got, want) {
			t.Errorf("orientation %d: %v, want %v", i, got, want)
		}
	}
	if len(v.Orientations) < 10 {
		t.Errorf("%d orientations", len(v.Orientations))
	}
}
