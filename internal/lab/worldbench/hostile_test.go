package worldbench

import (
	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// cost is what a run of a server costs, without the first second. It depends on the seed alone.
type cost struct {
	encodings, keyframes, coded int
	bytes, messages             int // of the honest players
}

func loadAll(t *testing.T) []cubes.Frame {
	frames, err := cubes.Load("../../../testdata/traces/cubes_delta_data_2000.bin.gz")
	uplinktest.Must(t, err)
	return frames
}

func TestCosts(t *testing.T) {
	s, err := Recorded(loadAll(t))
	uplinktest.Must(t, err)
	p, err := Plain(10000, 1)
	uplinktest.Must(t, err)
	for name, s := range map[string]Scene{"recorded": s, "plain": p} {
		run := func(more []behavior) (k cost) {
			cfg := offline(s, 64, 780)
			clients, err := cfg.clients(more)
			uplinktest.Must(t, err)
			for _, c := range clients {
				c.decoding = nil
			}
			srv, err := newServer(t.Context(), &cfg, clients)
			uplinktest.Must(t, err)
			for n := range warmup + cfg.Ticks {
				if n == warmup {
					for _, c := range clients {
						c.bytes, c.messages = 0, 0
					}
				}
				uplinktest.Must(t, srv.step(n))
				if n >= warmup {
					k.encodings += srv.encodes
					k.keyframes += srv.keyframes
					k.coded += srv.coded
				}
			}
			for _, c := range clients[:cfg.Players] {
				k.bytes += c.bytes
				k.messages += c.messages
			}
			return k
		}
		base := run(nil)
		show := func(what string, k cost) {
			r := func(a, b int) float64 { return float64(a) / float64(b) }
			t.Logf("%-9s %-16s enc %7d %.4f  key %5d  coded %9d %.4f  bytes %.4f messages %.4f", name, what, k.encodings, r(k.encodings, base.encodings), k.keyframes,
				k.coded, r(k.coded, base.coded), r(k.bytes, base.bytes), r(k.messages, base.messages))
		}
		show("none", base)
		for _, a := range attacks() {
			if name == "plain" {
				base = run(make([]behavior, len(a.clients)))
			}
			show(a.name, run(a.clients))
		}
		if name == "plain" {
			base = run(make([]behavior, len(hostile())))
		}
		show("all", run(hostile()))
	}
}
