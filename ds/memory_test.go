package ds_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// memory is what one player holds, in bytes of heap.
type memory struct {
	session  float64 // on the DS: a connection without RPC
	rpc      float64 // on the DS: an RPC of 20 components with a ring of 64, full
	reliable float64 // on the DS: the reliable channel, once it is used
	encoder  float64 // on the client: the RPC
}

// budget is what a player may hold on the DS for one RPC of 20 components.
const budget = 16 << 10

func TestPlayerFitsItsBudget(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	for _, codec := range rpcdelta.Codecs() {
		t.Run(codec.String(), func(t *testing.T) { checkBudget(t, measureMemory(t, codec)) })
	}
}

func checkBudget(t *testing.T, m memory) {
	t.Logf("%+v", m)
	if sum := m.session + m.rpc; sum > budget {
		t.Errorf("a player takes %.0f bytes, want %d at most", sum, budget)
	}
	for name, bytes := range map[string]float64{"session": m.session, "rpc": m.rpc, "reliable": m.reliable, "encoder": m.encoder} {
		if bytes < 100 {
			t.Errorf("%s: %.0f bytes cannot be", name, bytes)
		}
	}
}

// BenchmarkPlayerMemory reports what one of a thousand players holds.
func BenchmarkPlayerMemory(b *testing.B) {
	for _, codec := range rpcdelta.Codecs() {
		b.Run(codec.String(), func(b *testing.B) { benchmarkPlayerMemory(b, codec) })
	}
}

func benchmarkPlayerMemory(b *testing.B, codec rpcdelta.Codec) {
	var m memory
	for b.Loop() {
		m = measureMemory(b, codec)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(m.session, "session-B")
	b.ReportMetric(m.rpc, "rpc-B")
	b.ReportMetric(m.reliable, "reliable-B")
	b.ReportMetric(m.encoder, "client-rpc-B")
}

func heap() float64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// measureMemory has players made of nothing but datagrams join a server, so that
// the heap's growth is the server's alone.
func measureMemory(t testing.TB, codec rpcdelta.Codec) (m memory) {
	t.Helper()
	const players = 1000
	typ, err := rpcdelta.Compile[pawn]("Move", 0)
	uplinktest.Must(t, err)
	frames := payloads(t, typ, codec, 2*rpcdelta.DefaultRing)
	request := bindRequest(t, typ.Schema(), codec)

	c := newCrowd(players)
	srv, err := ds.Listen(uplinktest.Addr, ds.Config{Network: c})
	uplinktest.Must(t, err)
	delivered := 0
	uplinktest.Must(t, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[pawn]) { delivered++ }))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()

	grown := func(step func(player int)) float64 {
		before := heap()
		for i := range players {
			step(i)
		}
		return (heap() - before) / players
	}
	m.session = grown(func(i int) {
		c.hello(i)
		c.send(i, kindData, []byte{0}) // too short to be a message: the session begins
	})
	m.rpc = grown(func(i int) {
		c.send(i, kindData, request)
		for _, b := range frames {
			c.send(i, kindData, b)
		}
	})
	m.reliable = grown(c.sendReliable)
	if st := srv.Stats(); st.Transport.Conns != players || delivered != players*len(frames) || st.Drops[ds.UnknownRPC] != players {
		t.Errorf("%d players, %d frames, drops %v", st.Transport.Conns, delivered, st.Drops)
	}
	uplinktest.Must(t, srv.Close())
	uplinktest.Must(t, <-served)

	encoders := make([]*rpcdelta.Encoder, players)
	m.encoder = grown(func(i int) { encoders[i] = encoder(t, typ, codec, 2*rpcdelta.DefaultRing, func([]byte) {}) })
	runtime.KeepAlive(encoders)
	return m
}

// encoder makes an encoder that has sent so many frames, without acks.
func encoder(t testing.TB, typ *rpcdelta.Type[pawn], codec rpcdelta.Codec, n int, sent func(payload []byte)) *rpcdelta.Encoder {
	enc, err := rpcdelta.NewEncoder(typ.Schema(), rpcdelta.EncoderConfig{Codec: codec})
	uplinktest.Must(t, err)
	f := typ.Schema().NewFrame()
	for i := range n {
		call := pawnAt(i)
		uplinktest.Must(t, typ.Quantize(f, &call))
		b, _, err := enc.AppendFrame(nil, f)
		uplinktest.Must(t, err)
		sent(b)
	}
	return enc
}

func payloads(t testing.TB, typ *rpcdelta.Type[pawn], codec rpcdelta.Codec, n int) (all [][]byte) {
	encoder(t, typ, codec, n, func(b []byte) { all = append(all, b) })
	return all
}

func bindRequest(t testing.TB, s *rpcdelta.Schema, codec rpcdelta.Codec) []byte {
	r := control.BindRequest{
		Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: control.FieldHashes(s),
		RateHz: s.RateHz(), Ring: rpcdelta.DefaultRing, Codec: codec.String(),
	}
	b, err := r.Append(nil)
	uplinktest.Must(t, err)
	return b
}

// crowd is a network of clients that hold nothing but their session's number, and
// one server. Its datagrams are made as docs/SPEC.md says.
type crowd struct {
	sessions []uint64 // ids, by player
	numbers  []uint16 // of the next datagram
	in       chan arrival
	buf      [transport.MaxDatagram]byte

	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{} // closed when the deadline does
}

type arrival struct {
	from netip.AddrPort
	b    []byte
}

func newCrowd(players int) *crowd {
	return &crowd{sessions: make([]uint64, players), numbers: make([]uint16, players), in: make(chan arrival), changed: make(chan struct{})}
}

const firstPort = 10_000

func address(player int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+player))
}

// hello shakes hands.
func (c *crowd) hello(player int) {
	b := c.buf[:64]
	clear(b)
	b[0] = 2
	binary.LittleEndian.PutUint16(b[3:], 1)
	binary.LittleEndian.PutUint64(b[5:], uint64(player+1))
	c.in <- arrival{address(player), b}
	c.settle()
	c.numbers[player] = uint16(c.sessions[player] >> 16)
}

// send sends a numbered datagram.
func (c *crowd) send(player int, kind byte, body []byte) {
	b := append(c.buf[:0], kind|byte(c.sessions[player])<<3, byte(c.numbers[player]), byte(c.numbers[player]>>8))
	c.numbers[player]++
	c.in <- arrival{address(player), append(b, body...)}
	c.settle()
}

// sendReliable sends a message: a frame that this channel is not bound for, in
// KCP's first segment.
func (c *crowd) sendReliable(player int) {
	const push, window = 81, 64
	s := binary.LittleEndian.AppendUint32(nil, uint32(c.sessions[player]>>24))
	s = append(s, push, 0, window, 0)
	s = append(s, make([]byte, 12)...) // time and both sequences: 0
	s = binary.LittleEndian.AppendUint32(s, 4)
	c.send(player, 1, append(s, make([]byte, 4)...))
}

// settle waits until the server has taken all that was sent: it asks for more.
func (c *crowd) settle() { c.in <- arrival{address(0), nil} }

// ListenPacket implements transport.Network.
func (c *crowd) ListenPacket(string) (transport.PacketConn, error) { return c, nil }

// ReadFrom implements transport.PacketConn.
func (c *crowd) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	for {
		c.mu.Lock()
		deadline, changed := c.deadline, c.changed
		c.mu.Unlock()
		timeout := time.NewTimer(time.Until(deadline))
		select {
		case a := <-c.in:
			timeout.Stop()
			if a.b == nil {
				continue
			}
			return copy(p, a.b), a.from, nil
		case <-timeout.C:
			return 0, netip.AddrPort{}, os.ErrDeadlineExceeded
		case <-changed:
			timeout.Stop()
		}
	}
}

// WriteTo notes the session that a welcome grants.
func (c *crowd) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	if b[0]&7 == 3 {
		c.sessions[to.Port()-firstPort] = binary.LittleEndian.Uint64(b[13:])
	}
	return len(b), nil
}

// SetReadDeadline implements transport.PacketConn.
func (c *crowd) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// LocalAddr implements transport.PacketConn.
func (c *crowd) LocalAddr() netip.AddrPort { return netip.MustParseAddrPort(uplinktest.Addr) }

// Close implements transport.PacketConn.
func (c *crowd) Close() error { return nil }

var _ transport.PacketConn = (*crowd)(nil)
