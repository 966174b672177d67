package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

const ms = time.Millisecond

// settle lets virtual time pass; what happened until then can be read.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// newNetwork makes a network with a round trip of 50 ms.
func newNetwork(t *testing.T, loss float64, seed uint64) *uplinktest.Network {
	c := newLink(loss)
	c.Seed = seed
	return uplinktest.NewNetwork(t, c, c)
}

func newLink(loss float64) simnet.Config { return simnet.Config{Delay: 25 * ms, Loss: loss} }

// serve serves the RPC Move.
func serve(t *testing.T, n *uplinktest.Network, j *uplinktest.Journal) *uplinktest.Server {
	t.Helper()
	return uplinktest.Serve(t, n, ds.Config{}, func(s *ds.Server) error { return ds.Handle(s, "Move", j.Handle) })
}
