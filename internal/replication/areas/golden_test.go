package areas

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

var update = flag.Bool("update", false, "write testdata/*.session")

// classNames are the words of testdata/README.md for classes.
var classNames = map[schema.Class]string{
	schema.ClassNumber: "motion", schema.ClassQuat: "quat", schema.ClassInteger: "flags", schema.ClassAngle: "angle", schema.ClassBytes: "bytes",
}

// TestGolden compares sessions of clients of random worlds with testdata/*.session, byte for byte.
func TestGolden(t *testing.T) {
	for name, c := range map[string]struct {
		seed    uint64
		types   int
		objects int
		first   uint64 // number of the first snapshot
		link    link
	}{
		"moves":  {seed: 9, types: 2, objects: 40, link: link{every: 1, delay: 2}},
		"loss":   {seed: 4, types: 3, objects: 60, first: 1<<16 - 20, link: link{every: 2, delay: 3, jitter: 4, loss: 0.3}},
		"resent": {seed: 6, types: 2, objects: 50, link: link{every: 1, delay: 2, loss: 0.4}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			testWorld := newTestWorld(c.seed, 3, c.types, c.objects, c.first)
			for _, k := range testWorld.kinds {
				fmt.Fprintln(&out, "type")
				for _, f := range k.schema.Fields() {
					fmt.Fprintf(&out, "field %s %d %d %d\n", classNames[f.Class], f.N, f.Lo, f.Hi)
				}
			}
			g := testWorld.testClient(c.seed, c.link)
			g.enter = 200
			taken := 0
			g.observe = func(message []byte, err error) {
				writeTake(&out, g.dec, message, err)
				if taken++; taken%16 == 0 {
					_, _, err = g.dec.Decode(message)
					writeTake(&out, g.dec, message, err)
				}
			}
			for n := range 80 {
				testWorld.step()
				if n%25 == 0 {
					g.look(testWorld)
				}
				if n == 60 {
					g.dec.requestReset() // a hash that differs would have this effect too
					fmt.Fprintln(&out, "reset")
				}
				if n == 40 {
					exhaust(testWorld.world)
				}
				if testWorld.newest()%g.every == 0 {
					g.send(testWorld)
				}
				if err := g.deliver(testWorld); err != nil {
					t.Fatal(err)
				}
			}
			compareGolden(t, filepath.Join("testdata", name+".session"), out.Bytes())
		})
	}
}

// exhaust makes encodings of all groups for other baselines than that of the client, as many as a
// snapshot may have.
func exhaust(w *History) {
	n := w.Next() - 1
	for _, g := range w.groups {
		for d := range maxEncodings {
			if distance := 20 + d; g.first+uint64(distance) <= n {
				g.encode(n, snapshot.Baseline{Distance: distance})
			}
		}
	}
}

// writeTake writes a received message, its result, the ack that follows, and what is shown.
func writeTake(out *bytes.Buffer, d *Decoder, message []byte, err error) {
	result := "right"
	for word, target := range map[string]error{
		"late": snapshot.ErrLate, "missing": snapshot.ErrBaselineMissing, "desync": snapshot.ErrDesync, "malformed": snapshot.ErrMalformed,
	} {
		if errors.Is(err, target) {
			result = word
		}
	}
	ack := d.Ack()
	fmt.Fprintf(out, "take %x = %s %x\n", message, result, ack.Append(nil))
	if err != nil {
		return
	}
	if !d.Complete() {
		fmt.Fprintln(out, "partial")
	}
	for typ := range d.types {
		s := d.Shown(typ)
		for i := range s.Len() {
			fmt.Fprintf(out, "show %d %d %d %s\n", typ, s.Object(i).ID, s.Object(i).Generation, strings.Trim(fmt.Sprint(s.Row(i)), "[]"))
			if ages := d.Ages(typ); ages != nil && ages[i] > 0 {
				fmt.Fprintf(out, "age %d\n", ages[i])
			}
		}
	}
}

func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		must(os.MkdirAll("testdata", 0o755))
		must(os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have, expected := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(have), len(expected)) {
		if i >= len(have) || i >= len(expected) || have[i] != expected[i] {
			t.Fatalf("%s: line %d differs", file, i+1)
		}
	}
}
