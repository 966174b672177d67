package main

import (
	"bytes"
	"testing"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/internal/cubes"
)

// TestRecording checks that recordings are readable, reproducible, and begin at rest.
func TestRecording(t *testing.T) {
	write := func() []byte {
		var b bytes.Buffer
		if err := writeRecording(&b, world.Default(), 100, 5, 12); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	b := write()
	if !bytes.Equal(b, write()) {
		t.Error("not the same again")
	}
	frames, err := cubes.Read(bytes.NewReader(b))
	if err != nil || len(frames) != 100 {
		t.Fatal(len(frames), err)
	}
	if frames[still-1] != frames[0] || frames[still] == frames[still-1] {
		t.Error("it does not begin at rest")
	}
	if p := frames[0][1].Meters(); p.X != -14.5 || p.Y != -14.5 {
		t.Errorf("the first of the square is at %v", p)
	}
}
