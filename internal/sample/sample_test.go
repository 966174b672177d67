package sample_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
)

func Example() {
	for _, t := range []*trace.Trace{sample.Portal2(), sample.RocketLeague()} {
		fmt.Println(t.Name, t.Schema.RPC(), t.Schema.RateHz(), len(t.Frames))
	}
	// Output:
	// portal2_coop_60hz ServerMove 60 3600
	// rocketleague_solo_30hz ServerMove 30 1800
}

// TestMotion fails for a sample cut from a moment in which nobody plays. The first six components
// are Portal 2's location and view, and Rocket League's velocity and location.
func TestMotion(t *testing.T) {
	for _, s := range []*trace.Trace{sample.Portal2(), sample.RocketLeague()} {
		moved := 0
		for i := 1; i < len(s.Frames); i++ {
			if !slices.Equal(s.Frames[i].Ints[:6], s.Frames[i-1].Ints[:6]) {
				moved++
			}
		}
		if moved < len(s.Frames)/2 {
			t.Errorf("%s: %d of %d frames differ from the one before", s.Name, moved, len(s.Frames))
		}
	}
}

func TestOrigin(t *testing.T) {
	for _, name := range []string{sample.Portal2Name, sample.RocketLeagueName} {
		text, err := sample.Files.ReadFile(name + ".README.txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"\nOrigin ", "\nLicense ", "\nHere     Rows "} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s.README.txt has no line %q", name, want)
			}
		}
	}
}
