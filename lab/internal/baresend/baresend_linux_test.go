package baresend_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/lab/internal/baresend"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	players = 1000
	size    = 280 // bytes of a payload
)

// BenchmarkSend sends a datagram to each of 1,000 sessions over the transport, alone, as one batch,
// and in eight portions of a tick, in turns with the same datagrams sent by [baresend.Sender]. The
// ratios are those of the times.
func BenchmarkSend(b *testing.B) {
	n := &network{Network: transport.UDP()}
	conns, clients, listener := open(b, n)
	sink, err := transport.UDP().ListenPacket("0.0.0.0:0")
	uplinktest.Must(b, err)
	b.Cleanup(func() { _ = sink.Close() })
	to := make([]netip.AddrPort, players)
	for i := range to {
		to[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}), sink.LocalAddr().Port())
	}
	pc, err := transport.UDP().ListenPacket("127.0.0.1:0")
	uplinktest.Must(b, err)
	b.Cleanup(func() { _ = pc.Close() })
	bare, err := baresend.New(pc.(transport.BatchConn), to)
	uplinktest.Must(b, err)
	n.divert(to)
	for _, c := range clients {
		_ = c.Close()
	}

	payload := make([]byte, size)
	ways := []struct {
		name string
		send func()
	}{
		{"bare", func() {
			for i := range players {
				uplinktest.Must(b, bare.Add(i, payload))
			}
			uplinktest.Must(b, bare.Flush())
		}},
		{"batch", func() {
			for _, c := range conns {
				uplinktest.Must(b, c.Queue(payload))
			}
			listener.Flush()
		}},
		{"portions", func() {
			for i, c := range conns {
				uplinktest.Must(b, c.Queue(payload))
				if i%(players/8) == players/8-1 {
					listener.Flush()
				}
			}
		}},
		{"alone", func() {
			for _, c := range conns {
				uplinktest.Must(b, c.Send(payload))
			}
		}},
	}
	times := make([]time.Duration, len(ways))
	b.ReportAllocs()
	for b.Loop() {
		for i, w := range ways {
			start := time.Now()
			w.send()
			times[i] += time.Since(start)
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, w := range ways {
		b.ReportMetric(float64(times[i].Nanoseconds())/float64(b.N)/players, w.name+"-ns/datagram")
		b.ReportMetric(float64(times[i])/float64(times[0]), w.name+"-ratio")
	}
}

// open opens sessions over loopback.
func open(tb testing.TB, n *network) (conns, clients []*endpoint.Conn, l *endpoint.Listener) {
	l, err := endpoint.Listen("127.0.0.1:0", endpoint.Config{Network: n, Timeout: time.Hour, Tick: time.Second, MaxConns: players, Handshakes: players})
	uplinktest.Must(tb, err)
	opened := make(chan *endpoint.Conn, players)
	var served sync.WaitGroup
	served.Go(func() { _ = l.Serve(context.Background(), handler{opened: opened}) })
	tb.Cleanup(func() { _ = l.Close(); served.Wait() })
	for range players {
		c, err := endpoint.Dial(tb.Context(), fmt.Sprint(l.Addr()), endpoint.Config{Tick: time.Hour}, handler{})
		uplinktest.Must(tb, err)
		conns, clients = append(conns, <-opened), append(clients, c)
	}
	return conns, clients, l
}

type handler struct{ opened chan<- *endpoint.Conn }

func (h handler) Opened(c *endpoint.Conn) {
	if h.opened != nil {
		h.opened <- c
	}
}
func (handler) Closed(*endpoint.Conn, error)               {}
func (handler) Datagram(*endpoint.Conn, []byte, time.Time) {}
func (handler) Message(*endpoint.Conn, []byte, time.Time)  {}
func (handler) Tick(time.Time)                             {}

// network opens sockets of the operating system. Once diverted, they send each datagram to another
// address: the clients must not compete for the processor.
type network struct {
	transport.Network
	to atomic.Pointer[[]netip.AddrPort]
}

func (n *network) divert(to []netip.AddrPort) { n.to.Store(&to) }

func (n *network) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	return &diverted{BatchConn: pc.(transport.BatchConn), network: n}, nil
}

type diverted struct {
	transport.BatchConn
	network *network
	next    atomic.Uint64
}

func (d *diverted) addr(to netip.AddrPort) netip.AddrPort {
	if all := d.network.to.Load(); all != nil {
		return (*all)[d.next.Add(1)%players]
	}
	return to
}

// ReadBatch reads nothing once the network is diverted, not even that the clients have left.
func (d *diverted) ReadBatch(into []transport.Datagram) (int, error) {
	for {
		n, err := d.BatchConn.ReadBatch(into)
		if err != nil || d.network.to.Load() == nil {
			return n, err
		}
	}
}

func (d *diverted) WriteBatch(out []transport.Datagram) (int, error) {
	for i := range out {
		out[i].Addr = d.addr(out[i].Addr)
	}
	return d.BatchConn.WriteBatch(out)
}

func (d *diverted) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	return d.BatchConn.WriteTo(p, d.addr(to))
}
