package cost

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// replay is the traffic of players, who send in turn.
type replay struct {
	players []*actor
	order   []int
	in      []byte

	fetched [costRound][]byte // payloads of one round
	memory  []byte            // of them
}

// actor is a player with an open session, whose datagrams are encrypted in advance.
type actor struct {
	payloads [][]byte
	sealed   [][]byte
	fd       int // its socket, which is connected; no poller knows of it, since the server would pay for that
}

// recording configures the calls of a T to be recorded.
type recording[T any] struct {
	suite transport.Suite
	codec rpcdelta.Codec
	at    func(n int) T
	bind  bool
}

// record connects players, binds the RPC if r.bind is set, and records what they send in b.N
// rounds. Every sixth frame is acked at once.
func (r recording[T]) record(b *testing.B, server netip.AddrPort, players int) *replay {
	typ, err := schema.Compile[T]("Move", 0)
	uplinktest.Must(b, err)
	rng := rand.New(rand.NewPCG(1, 2))
	p := &replay{order: rng.Perm(players), in: make([]byte, maxDatagram), memory: make([]byte, 0, costRound*maxDatagram)}
	for i := range players {
		a := &actor{payloads: r.payloads(b, typ, i, b.N*costRound/players)}
		var request []byte
		if r.bind {
			request = bindRequest(b, typ.Schema(), r.codec)
		}
		a.connect(b, server, r.suite, request)
		b.Cleanup(func() { _ = unix.Close(a.fd) })
		p.players = append(p.players, a)
	}
	return p
}

// payloads returns the payloads of count frames of a player.
func (r recording[T]) payloads(b *testing.B, typ *schema.Type[T], player, count int) [][]byte {
	enc, err := rpcdelta.NewEncoder(typ.Schema(), rpcdelta.EncoderConfig{Codec: r.codec})
	uplinktest.Must(b, err)
	dec := newDecoder(b, typ.Schema(), r.codec, nil)
	f := typ.Schema().NewFrame()
	payloads := make([][]byte, count)
	var acks []byte
	for i := range payloads {
		call := r.at(37*player + i)
		uplinktest.Must(b, typ.Quantize(f, &call))
		payloads[i], _, err = enc.AppendFrame(nil, f)
		uplinktest.Must(b, err)
		_, err = dec.Decode(payloads[i])
		uplinktest.Must(b, err)
		if i%6 != 5 {
			continue
		}
		acks = dec.AppendAck(acks[:0])
		ack, _, err := rpcdelta.ParseAck(acks)
		uplinktest.Must(b, err)
		uplinktest.Must(b, enc.Ack(ack))
	}
	return payloads
}

// connect opens a session, sends a request to bind if there is one, and seals the payloads.
func (a *actor) connect(b *testing.B, server netip.AddrPort, suite transport.Suite, request []byte) {
	r := &recorder{}
	bound := listening{bound: make(chan struct{}, 1)}
	conn, err := endpoint.Dial(b.Context(), server.String(), endpoint.Config{
		Network: r, Suites: []transport.Suite{suite}, Insecure: true, Timeout: time.Hour,
	}, bound)
	uplinktest.Must(b, err)
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for waiting := request != nil; waiting; {
		uplinktest.Must(b, conn.Send(request))
		select {
		case <-bound.bound:
			waiting = false
		case <-again.C: // a datagram may be lost over loopback too
		}
	}
	a.fd = r.record(b, server)
	for _, p := range a.payloads {
		uplinktest.Must(b, conn.Send(p))
	}
	uplinktest.Must(b, conn.Close())
	a.sealed = r.datagrams
	if len(a.sealed) != len(a.payloads) {
		b.Fatalf("%d datagrams of %d payloads", len(a.sealed), len(a.payloads))
	}
}

// turn returns the player who sends datagram i of a round, and the index among its datagrams.
func (p *replay) turn(round, i int) (player, n int) {
	return p.order[i%len(p.order)], (round*costRound + i) / len(p.order)
}

// send sends the datagrams of a round, and discards what the sockets have received.
func (p *replay) send(b *testing.B, round int) {
	for i := range costRound {
		player, n := p.turn(round, i)
		a := p.players[player]
		for {
			if _, err := unix.Read(a.fd, p.in); err != nil {
				break
			}
		}
		if _, err := unix.Write(a.fd, a.sealed[n]); err != nil {
			b.Error(err)
		}
	}
}

// fetch copies the payloads of a round into one buffer, like received ones.
func (p *replay) fetch(round int) {
	p.memory = p.memory[:0]
	for i := range p.fetched {
		player, n := p.turn(round, i)
		start := len(p.memory)
		p.memory = append(p.memory, p.players[player].payloads[n]...)
		p.fetched[i] = p.memory[start:]
	}
}

// listening signals the answer to a request to bind.
type listening struct {
	unheard
	bound chan struct{}
}

func (l listening) Datagram(_ *endpoint.Conn, b []byte, _ time.Time) {
	if t, _, err := message.Split(b); err == nil && t == message.Bound {
		select {
		case l.bound <- struct{}{}:
		default: // a second answer
		}
	}
}

// recorder is a client's network and its socket, which records data datagrams once record is
// called.
type recorder struct {
	*net.UDPConn

	mu        sync.Mutex
	recording bool
	datagrams [][]byte
}

func (r *recorder) ListenPacket(addr string) (transport.PacketConn, error) {
	a, err := net.ResolveUDPAddr("udp4", addr)
	if err != nil {
		return nil, err
	}
	r.UDPConn, err = net.ListenUDP("udp4", a)
	return r, err
}

func (r *recorder) ReadFrom(p []byte) (int, netip.AddrPort, error) { return r.ReadFromUDPAddrPort(p) }

func (r *recorder) LocalAddr() netip.AddrPort {
	return r.UDPConn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func (r *recorder) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.recording {
		return r.WriteToUDPAddrPort(p, to)
	}
	if uplinktest.Kind(p) == uplinktest.DataKind {
		r.datagrams = append(r.datagrams, bytes.Clone(p))
	}
	return len(p), nil
}

// record starts recording, and returns another descriptor of the socket, which outlives the client.
func (r *recorder) record(b *testing.B, server netip.AddrPort) (fd int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording = true
	raw, err := r.SyscallConn()
	uplinktest.Must(b, err)
	var failed error
	uplinktest.Must(b, raw.Control(func(old uintptr) {
		if fd, failed = unix.Dup(int(old)); failed == nil {
			failed = unix.Connect(fd, &unix.SockaddrInet4{Addr: server.Addr().As4(), Port: int(server.Port())})
		}
	}))
	uplinktest.Must(b, failed)
	return fd
}

// mirrored processes the fetched payloads.
type mirrored interface {
	take(b *testing.B, p *replay)
}

// mirror has decoders of all players like the DS.
type mirror[T any] struct {
	typ      *schema.Type[T]
	decoders []*rpcdelta.Decoder
	handle   func(*ds.Player, ds.Frame[T]) // nil: decodes only
	value    T
}

func newMirror[T any](b *testing.B, players int, codec rpcdelta.Codec, handle func(*ds.Player, ds.Frame[T])) *mirror[T] {
	typ, err := schema.Compile[T]("Move", 0)
	uplinktest.Must(b, err)
	m := &mirror[T]{typ: typ, handle: handle, decoders: make([]*rpcdelta.Decoder, players)}
	scratch := rpcdelta.NewScratch(typ.Schema())
	for i := range m.decoders {
		m.decoders[i] = newDecoder(b, typ.Schema(), codec, scratch)
	}
	return m
}

func (m *mirror[T]) take(b *testing.B, p *replay) {
	for i, payload := range p.fetched {
		player, _ := p.turn(0, i)
		frames, err := m.decoders[player].Decode(payload)
		if err != nil || len(frames) != 1 {
			b.Errorf("%d frames, %v", len(frames), err)
			return
		}
		if m.handle == nil {
			continue
		}
		f := &frames[0]
		if err := m.typ.Restore(&m.value, f.Frame); err != nil {
			b.Error(err)
		}
		m.handle(nil, ds.Frame[T]{Value: m.value, Seq: f.Seq, Missed: f.Missed, Late: f.Late})
	}
}

// unheard is a handler of the transport that does nothing.
type unheard struct{}

func (unheard) Opened(*endpoint.Conn)                      {}
func (unheard) Closed(*endpoint.Conn, error)               {}
func (unheard) Datagram(*endpoint.Conn, []byte, time.Time) {}
func (unheard) Message(*endpoint.Conn, []byte, time.Time)  {}
func (unheard) Tick(time.Time)                             {}

// bindRequest returns a request to bind the RPC of a schema.
func bindRequest(b *testing.B, s *schema.Schema, codec rpcdelta.Codec) []byte {
	r := message.BindRequest{
		Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: message.FieldHashes(s), RateHz: 60, Ring: rpcdelta.DefaultRing,
		Codec: codec.String(), PerTick: s.PerTick(),
	}
	request, err := r.Append(nil)
	uplinktest.Must(b, err)
	return request
}
