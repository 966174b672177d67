package snapshots

import (
	"encoding/hex"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestState decodes the golden sessions of package statesync.
func TestState(t *testing.T) {
	for _, file := range []string{"updates.golden", "kinds.golden"} {
		t.Run(file, func(t *testing.T) { playState(t, "../../../statesync/testdata/"+file) })
	}
}

func playState(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &stateReceiver{rest: -1}
	var last *statePacket
	var want []object
	components, compared, hashes := 0, 0, 0
	compare := func(line int) {
		if last == nil {
			return
		}
		var got []object
		for _, u := range last.updates {
			o := u.object
			if u.gone {
				o = object{id: u.id, generation: -1}
			}
			got = append(got, o)
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("line %d: packet %d has %v\nwant %v", line, last.number, got, want)
		}
		compared += len(want)
		last, want = nil, nil
	}
	ints := func(words []string) (n []int64) {
		for _, w := range words {
			v, _ := strconv.ParseInt(w, 10, 64) // other words are not used
			n = append(n, v)
		}
		return n
	}
	index := func(name string) int {
		return slices.IndexFunc(r.fields, func(f stateField) bool { return f.name == name })
	}
	for i, line := range strings.Split(string(b), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		n := ints(words)
		switch words[0] {
		case "field":
			r.fields = append(r.fields, stateField{field: field{class: words[2], n: int(n[3]), at: components, lo: n[4], hi: n[5]}, name: words[1], velocity: -1})
			components += int(n[3])
		case "velocity":
			f := &r.fields[index(words[1])]
			f.velocity, f.factor = index(words[2]), (n[3]+4)>>3
			if f.class == "quat" {
				f.factor = (n[3] + 32) >> 6
			}
			r.fields[f.velocity].isVelocity = true
		case "rest":
			r.rest = index(words[1])
		case "packet":
			compare(i)
			if r.initial == nil {
				r.init()
			}
			if words[3] == "lost" {
				continue
			}
			packet, err := hex.DecodeString(words[1])
			if err != nil {
				t.Fatal(err)
			}
			var reason string
			if last, reason = r.receive(packet); last == nil {
				if reason != words[3] {
					t.Fatalf("line %d: %s, want %s", i+1, reason, words[3])
				}
				continue
			}
			if last.tick != n[3] {
				t.Fatalf("line %d: tick %d, want %d", i+1, last.tick, n[3])
			}
			hashes += int(truth(last.number%64 == 0 && !last.keyframe))
		case "inputs":
			if got := hex.EncodeToString(r.inputs[n[1]]); words[2] != "missing" && !strings.Contains(got, words[3]) || words[2] == "missing" && !slices.Contains(r.missing, n[1]) {
				t.Fatalf("line %d: inputs %s", i+1, got)
			}
		case "object":
			o := object{id: n[1], generation: -1}
			if words[2] != "gone" {
				o = object{n[1], n[2], n[3:]}
			}
			want = append(want, o)
		}
	}
	if compared < 800 || hashes == 0 {
		t.Errorf("%d objects, %d hashes", compared, hashes)
	}
	t.Logf("%d objects", compared)
}
