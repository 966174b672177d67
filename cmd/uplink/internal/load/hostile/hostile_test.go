package hostile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

// soak runs both phases in virtual time with one client of each of some kinds.
func soak(t *testing.T, kinds ...string) (*Result, []Phase) {
	t.Helper()
	o := Options{Players: 2, For: time.Second, Kinds: kinds}
	o.Hostile = len(o.chosen())
	uplinktest.Must(t, o.Validate())
	network, err := simnet.NewNetwork(simnet.Config{Delay: 10 * time.Millisecond}, simnet.Config{Delay: 10 * time.Millisecond})
	uplinktest.Must(t, err)
	var phases []Phase
	result, err := Run(t.Context(), o, network, func() (Target, error) { return NewServer("127.0.0.1:7777", network) }, func(p Phase) {
		t.Log(p)
		phases = append(phases, p)
	})
	uplinktest.Must(t, err)
	return result, phases
}

// TestRun runs attackers of all kinds. Honest players keep every frame, the server drops traffic
// above the limits, and no client exceeds a limit that would end its session. Honest clients
// instead of the attackers send about as many datagrams, of which none is dropped.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var chosen []string // all
		for i := range kinds {
			if race.Enabled && kinds[i].rate <= 1000 { // the race detector takes minutes for the others
				chosen = append(chosen, kinds[i].name)
			}
		}
		result, phases := soak(t, chosen...)
		if len(phases) != 2 {
			t.Fatalf("%d phases", len(phases))
		}
		hostile, honest := &result.Hostile, &result.Honest
		for _, p := range phases {
			if p.Sent < 2*60*4 || p.Frames != p.Sent || p.Clients != len((&Options{Kinds: chosen}).chosen()) || len(p.Ended) != 0 {
				t.Errorf("%v", p)
			}
		}
		for _, reason := range []string{"message rate_limited", "message malformed", "message invalid_ack", "message unknown_rpc", "frame malformed"} {
			if hostile.Drops[reason] == 0 {
				t.Errorf("nothing is dropped as %s: %v", reason, hostile.Drops)
			}
		}
		delete(honest.Drops, "kernel") // of a socket of the same port
		if len(honest.Drops) != 0 {
			t.Errorf("of honest clients %v is dropped", honest.Drops)
		}
		if share := honest.Datagrams / hostile.Datagrams; share < 0.9 || share > 1.2 {
			t.Errorf("honest clients send %.0f datagrams a second, hostile ones %.0f", honest.Datagrams, hostile.Datagrams)
		}
	})
}

func TestVerdict(t *testing.T) {
	good := Result{Hostile: Phase{Name: "hostile", Sent: 1000, Frames: 999}, Honest: Phase{Name: "honest", Sent: 1000, Frames: 1000}, Added: 0.02}
	uplinktest.Must(t, good.Verdict())
	for want, change := range map[string]func(*Result){
		"costs 2.10 % of a core more":                 func(r *Result) { r.Added = 0.021 },
		"hostile phase: the game got 998 of 1000":     func(r *Result) { r.Hostile.Frames = 998 },
		"honest phase: the game got 0 of 1000 frames": func(r *Result) { r.Honest.Frames = 0 },
	} {
		r := good
		change(&r)
		if err := r.Verdict(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
