package fleetload

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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
	seed      = flag.Uint64("seed", 1, "random seed of the links of TestRun")
)

// virtual is a server in virtual time.
type virtual struct {
	*Server
	t       *testing.T
	network *uplinktest.Network
}

// Kill closes the sockets of the server, as when its process dies.
func (v *virtual) Kill() error {
	v.network.Crash(v.t, v.Addr().String())
	return v.Close()
}

// TestRun hands players over between four servers at random, drains two of these and kills two, in
// virtual time, over links with a round-trip time of 100 ms and 5 % packet loss.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 50 * time.Millisecond, Loss: 0.05, Seed: *seed}
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
