package visits

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

var (
	players   = flag.Int("players", 40, "players of TestRun")
	handovers = flag.Float64("handovers", 8, "handovers per second of TestRun")
	duration  = flag.Duration("for", 9*time.Second, "duration of the handovers of TestRun")
	rate      = flag.Float64("rate", 30, "calls per second of each player of TestRun")
	loss      = flag.Float64("loss", 0.05, "packet loss of TestRun")
	seed      = flag.Uint64("seed", 1, "random seed of the links of TestRun")
)

func TestCount(t *testing.T) {
	for name, c := range map[string]struct {
		numbers       []uint32
		lost, doubled uint64
	}{
		"all":       {[]uint32{0, 1, 2, 3, 4}, 0, 0},
		"two parts": {[]uint32{3, 4, 0, 1, 2}, 0, 0},
		"none":      {nil, 5, 0},
		"lost":      {[]uint32{1, 3}, 3, 0},
		"doubled":   {[]uint32{0, 1, 2, 3, 4, 2, 3}, 0, 2},
		"both":      {[]uint32{0, 1, 1, 3}, 2, 1},
	} {
		var got []Span
		for _, n := range c.numbers {
			got = extend(got, n)
		}
		if lost, doubled := count(got, 5); lost != c.lost || doubled != c.doubled {
			t.Errorf("%s: %d lost, %d doubled", name, lost, doubled)
		}
	}
}

func TestVerdict(t *testing.T) {
	good := Result{Drains: []Drained{{250, 30 * time.Second}}, Missing: Distribution{P99: 2}, Orphans: 3, Back: 3, Return: meter.Summary{Max: 3000}}
	uplinktest.Must(t, good.Verdict())
	for want, change := range map[string]func(*Result){
		"1 mismatches":                   func(r *Result) { r.Mismatches = 1 },
		"1 reliable calls":               func(r *Result) { r.Lost = 1 },
		"2 arrived twice":                func(r *Result) { r.Doubled = 2 },
		"1 sessions ended":               func(r *Result) { r.Unplanned = 1 },
		"3 calls are missing":            func(r *Result) { r.Missing.P99 = 3 },
		"a drain of 250 players":         func(r *Result) { r.Drains = []Drained{{250, 31 * time.Second}} },
		"1 of 3 players":                 func(r *Result) { r.Back = 2 },
		"were back after up to 4000 ms,": func(r *Result) { r.Return.Max = 4000 },
	} {
		r := good
		change(&r)
		if err := r.Verdict(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// virtual is a server in virtual time.
type virtual struct {
	*Server
	t       *testing.T
	network *uplinktest.Network
}

// Kill closes the sockets of the server, as when its process dies.
func (v *virtual) Kill() error {
	v.network.Crash(v.t, v.Addr().String())
	_ = v.Close() // it has lost its sockets
	return nil
}

// TestRun hands players over between four servers at random, drains two of these and kills two, in
// virtual time, over links with a round-trip time of 100 ms and packet
// loss.
func TestRun(t *testing.T) {
	if testing.Short() {
		*players, *handovers = 12, 3
	}
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 50 * time.Millisecond, Loss: *loss, Seed: *seed}
		network := uplinktest.NewNetwork(t, link, link)
		store := fleet.NewMemory()
		port := 7000
		start := func(name string) (Node, error) {
			port++
			s, err := NewServer(fmt.Sprint("127.0.0.1:", port), name, store, network, 2**players)
			return &virtual{s, t, network}, err
		}
		o := Options{Servers: 4, Players: *players, Handovers: *handovers, For: *duration, Rate: *rate}
		uplinktest.Must(t, o.Validate())
		res, err := Run(t.Context(), o, store, network, start, func(line string) { t.Log(line) })
		uplinktest.Must(t, err)
		if err := res.Verdict(); err != nil {
			t.Error(err)
		}
		if res.Handovers.Completed < uint64(*handovers*duration.Seconds()/2) || res.Snapshots == 0 || res.Orphans == 0 {
			t.Errorf("%+v", res)
		}
	})
}
