package worldbench

import (
	"runtime"
	"testing"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// cost is what a run costs after the first second. It depends on the seed alone: play runs on one
// processor, since players that are encoded for at the same time take each other's encodings.
type cost struct {
	encodings, coded int // and bytes
	bytes, messages  int // of the honest players
	mismatches       int
}

func play(t *testing.T, s Scene, more []behavior, decode bool) (k cost) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cfg := offline(s, 64, stallTicks+2*rate)
	clients, err := cfg.clients(more)
	uplinktest.Must(t, err)
	for _, c := range clients {
		if !decode {
			c.decoding = nil
		}
	}
	srv, err := newServer(t.Context(), &cfg, clients)
	uplinktest.Must(t, err)
	for n := range warmup + cfg.Ticks {
		uplinktest.Must(t, srv.step(n))
		if n >= warmup {
			k.encodings += srv.encodes
			k.coded += srv.coded
			continue
		}
		for _, c := range clients {
			c.bytes, c.messages = 0, 0
		}
	}
	for _, c := range clients[:cfg.Players] {
		k.bytes += c.bytes
		k.messages += c.messages
		if c.decoding != nil {
			k.mismatches += c.decoding.bad
		}
	}
	return k
}

// TestHostileClients checks that clients that stall, lie, lose, join or leave raise neither the
// work of a tick nor the bytes of honest players by 1 %, alone and together. Where players see
// areas, some of which only these clients see, the comparison is with as many honest players more.
func TestHostileClients(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("it plays 13 s many times")
	}
	frames, err := cubes.Load("../../../testdata/traces/cubes_delta_data_2000.bin.gz")
	uplinktest.Must(t, err)
	recording, err := Recorded(frames)
	uplinktest.Must(t, err)
	for _, scene := range []struct {
		name  string
		areas bool
		fresh func() (Scene, error)
	}{
		{"cubes", false, func() (Scene, error) { return recording, nil }},
		{"plain", true, func() (Scene, error) { return Plain(2000, 1) }},
	} {
		play := func(more []behavior, decode bool) cost {
			s, err := scene.fresh()
			uplinktest.Must(t, err)
			return play(t, s, more, decode)
		}
		bases := map[int]cost{}
		for _, a := range append(attacks(), attack{"all", hostile()}) {
			honest := 0
			if scene.areas {
				honest = len(a.clients)
			}
			base, ok := bases[honest]
			if !ok {
				base = play(make([]behavior, honest), false)
				bases[honest] = base
			}
			k := play(a.clients, a.name == "all")
			ratio := func(a, b int) float64 { return float64(a) / float64(b) }
			encodings, coded := ratio(k.encodings, base.encodings), ratio(k.coded, base.coded)
			bytes, messages := ratio(k.bytes, base.bytes), ratio(k.messages, base.messages)
			t.Logf("%s: %-16s %.4f of the encodings, %.4f of their bytes, %.4f of the players' bytes, %.4f of their snapshots", scene.name, a.name, encodings, coded, bytes, messages)
			if encodings >= 1.01 || bytes >= 1.01 || messages < .999 || k.mismatches > 0 || !scene.areas && coded >= 1.01 {
				t.Errorf("%s: %s: %+v, without them %+v", scene.name, a.name, k, base)
			}
		}
	}
}
