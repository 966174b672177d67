package baresend_test

import (
	"net/netip"
	"testing"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/lab/internal/baresend"
	"github.com/uplink-rpc/uplink/transport"
)

// counting is a BatchConn that counts what it is given.
type counting struct {
	transport.BatchConn
	batches, datagrams, bytes int
}

func (c *counting) WriteBatch(out []transport.Datagram) (int, error) {
	c.batches++
	c.datagrams += len(out)
	for i := range out {
		c.bytes += len(out[i].Bytes())
	}
	return len(out), nil
}

// TestSender verifies that each payload is sent once, with the overhead of the transport.
func TestSender(t *testing.T) {
	const peers, size = 300, 280
	var c counting
	s, err := baresend.New(&c, make([]netip.AddrPort, peers))
	uplinktest.Must(t, err)
	payload := make([]byte, size)
	tick := func() {
		for i := range peers {
			uplinktest.Must(t, s.Add(i, payload))
		}
		uplinktest.Must(t, s.Flush())
	}
	tick()
	each := size + endpoint.HeaderSize + transport.AES128GCM.Overhead()
	if c.batches != 2 || c.datagrams != peers || c.bytes != peers*each {
		t.Errorf("%d datagrams of %d bytes in %d batches, want %d of %d in 2", c.datagrams, c.bytes, c.batches, peers, peers*each)
	}
	if allocs := allocs.PerRun(10, tick); allocs != 0 && !race.Enabled {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
