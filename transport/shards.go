package transport

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/uplink-rpc/uplink/transport/internal/udp"
)

// shardNetwork is a [Network] that can spread what comes to one address over several packet connections.
// [UDP]'s does on Linux, by SO_REUSEPORT.
type shardNetwork interface {
	Network
	// ListenShards opens n packet connections on addr for a listener, n at least 1; or only one where the network
	// cannot do more. While none of them is closed, all datagrams of one sender come to the same one.
	ListenShards(addr string, n int) ([]PacketConn, error)
}

func (udpNetwork) ListenShards(addr string, n int) ([]PacketConn, error) {
	conns, err := udp.ListenShards(addr, n)
	if err != nil {
		return nil, err
	}
	pcs := make([]PacketConn, len(conns))
	for i, c := range conns {
		pcs[i] = c
	}
	return pcs, nil
}

// MaxShards returns the largest [Config.Shards] on this machine: as many as it has processors, or 4 if that is
// more, so that what works on a large machine can be tried on a small one.
func MaxShards() int { return max(runtime.NumCPU(), 4) }

// checkShards returns an error that says what is wrong with [Config.Shards].
func (c Config) checkShards() error {
	if most := MaxShards(); c.Shards < 0 || c.Shards > most {
		return fmt.Errorf("transport: Config.Shards is %d, must be 1 to %d: more than there are processors gain nothing", c.Shards, most)
	}
	return nil
}

// listen opens the packet connections of a listener's shards.
func (c Config) listen(addr string) ([]PacketConn, error) {
	n, spreads := c.Network.(shardNetwork)
	if !spreads {
		pc, err := c.Network.ListenPacket(addr)
		if err != nil {
			return nil, err
		}
		return c.listening(pc), nil
	}
	pcs, err := n.ListenShards(addr, c.Shards)
	if err != nil {
		return nil, err
	}
	return c.listening(pcs...), nil
}

// listening returns pcs, and tells if they are not as many as there should be.
func (c Config) listening(pcs ...PacketConn) []PacketConn {
	if len(pcs) < c.Shards {
		c.Logger.Warn("the network does not spread datagrams over shards", "shards", len(pcs), "wanted", c.Shards)
	}
	return pcs
}

func closeEach(pcs []PacketConn) (err error) {
	for _, pc := range pcs {
		err = errors.Join(err, pc.Close())
	}
	return err
}
