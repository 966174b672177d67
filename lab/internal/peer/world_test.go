package peer

import (
	"bytes"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
	"github.com/uplink-rpc/uplink/lab/internal/worldbench"
)

// TestWorlds decodes the snapshots of a recording for a player whose acks are late.
func TestWorlds(t *testing.T) {
	frames, err := cubes.Load("../../../testdata/traces/cubes_delta_data_120.bin.gz")
	if err != nil {
		t.Fatal(err)
	}
	sets, err := cubeset.Of(frames)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Worlds(sets[:60]) {
		if err := p.Begin(cubeset.Schema(), sets[0]); err != nil {
			t.Fatal(err)
		}
		c := p.Join()
		for n, set := range sets {
			if n >= 8 && n%3 != 0 && (n < 20 || n > 90) {
				if err := c.Ack(uint64(n-8), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Add(set); err != nil {
				t.Fatal(err)
			}
			payload, err := c.Append([]byte("before"))
			if err != nil || string(payload[:6]) != "before" {
				t.Fatal(err, payload[:6])
			}
			if !decodes(t, p, payload[6:], sets, n) {
				t.Fatalf("%s: snapshot %d is decoded as another one", p.Name(), n)
			}
		}
	}
}

// decodes reports whether a payload is that of snapshot n.
func decodes(t *testing.T, p worldbench.Peer, payload []byte, sets []*snapshot.Set, n int) bool {
	t.Helper()
	if z, ok := p.(*zstdWorld); ok {
		plain, err := z.decode(payload)
		return err == nil && bytes.Equal(plain, z.plain)
	}
	q, base := p.(*quakeWorld), sets[0]
	if payload[0] > 0 {
		base = sets[n-int(payload[0])]
	}
	var rows [][]int32
	for i := range base.Len() {
		rows = append(rows, slices.Clone(base.Row(i)))
	}
	if err := q.decode(rows, payload); err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		if !slices.Equal(row, sets[n].Row(i)) {
			return false
		}
	}
	return true
}
