package bots

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type loopback struct {
	transport.PacketConn
	waiting [][]byte
}

func (l *loopback) ListenPacket(string) (transport.PacketConn, error) { return &loopback{}, nil }

func (l *loopback) WriteTo(p []byte, _ netip.AddrPort) (int, error) {
	l.waiting = append(l.waiting, slices.Clone(p))
	return len(p), nil
}

func (l *loopback) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	if len(l.waiting) == 0 {
		return 0, netip.AddrPort{}, transport.ErrTimeout // any error
	}
	n := copy(p, l.waiting[0])
	l.waiting = l.waiting[1:]
	return n, netip.AddrPort{}, nil
}

func TestLossyNetwork(t *testing.T) {
	const sent = 10_000
	pass := func(n transport.Network) (got []int) {
		pc, err := n.ListenPacket("")
		uplinktest.Must(t, err)
		for i := range sent {
			if n, err := pc.WriteTo([]byte{byte(i >> 8), byte(i)}, netip.AddrPort{}); n != 2 || err != nil {
				t.Fatal(n, err)
			}
		}
		var buf [2]byte
		for {
			if _, _, err := pc.ReadFrom(buf[:]); err != nil {
				return got
			}
			got = append(got, int(buf[0])<<8|int(buf[1]))
		}
	}
	network := func(out, in float64) transport.Network {
		n, err := newLossyNetwork(&loopback{}, simnet.Config{Loss: out, Seed: 7}, simnet.Config{Loss: in, Seed: 8})
		uplinktest.Must(t, err)
		return n
	}
	for _, c := range []struct{ out, in, want float64 }{{0, 0, 1}, {0.3, 0, 0.7}, {0, 0.3, 0.7}, {0.5, 0.5, 0.25}, {1, 0, 0}, {0, 1, 0}} {
		got := pass(network(c.out, c.in))
		if share := float64(len(got)) / sent; share < c.want-0.02 || share > c.want+0.02 || !slices.IsSorted(got) {
			t.Errorf("losses %v and %v: %v came, want %v", c.out, c.in, share, c.want)
		}
	}
	n := network(0.5, 0)
	first, second := pass(n), pass(n)
	if slices.Equal(first, second) || !slices.Equal(first, pass(network(0.5, 0))) {
		t.Error("the seed does not decide what is lost, or all sockets lose the same")
	}
	if _, err := newLossyNetwork(nil, simnet.Config{Loss: 2}, simnet.Config{}); err == nil {
		t.Error("a loss of 2 is no error")
	}
}
