package spectate

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/spectate/spectatetest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
)

// FuzzRun plays arbitrary messages of a server: see package entries. Nothing panics, and memory is
// bounded.
func FuzzRun(f *testing.F) {
	offer, datagrams := spectatetest.Messages(f, 3)
	seed := entries.Of(offer, true)
	for _, b := range datagrams {
		seed = append(seed, entries.Of(b, false)...)
	}
	f.Add(seed)
	f.Add(slices.Concat(entries.Of(offer, true), entries.Of(datagrams[2], false), seed))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := spectatetest.New()
		for b, reliable := range entries.All(in) {
			if reliable {
				c.Message(b)
			} else {
				c.Datagram(b)
			}
		}
		n := uint64(0)
		report, err := Run(bytes.NewReader(c.File()), Options{World: spectatetest.World, Each: func(s *Snapshot) error {
			n++
			return s.WriteText(&bytes.Buffer{})
		}})
		var full *budget.Error
		if report.Snapshots != n || errors.As(err, &full) && len(in) < 1<<10 {
			t.Fatalf("%d snapshots, %+v, %v", n, report, err)
		}
	})
}
