package ds_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// memory is the heap of one player, in bytes. Package transport measures the DS's end of a session
// by itself.
type memory struct {
	session  float64 // on both ends, sealed with GCM; the client's has a goroutine and buffers
	rpc      float64 // on the DS: an RPC of 20 components with a ring of 64, full
	reliable float64 // on both ends: the reliable channel, once it is used
	encoder  float64 // on the client: the RPC
}

// Limits of the heap of a player on the DS, in bytes: for one RPC of 20 components, and for that
// with its session.
const (
	rpcBudget    = 16 << 10
	playerBudget = 32 << 10
)

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
	if m.rpc > rpcBudget {
		t.Errorf("an RPC takes %.0f bytes, want %d at most", m.rpc, rpcBudget)
	}
	if sum := m.session + m.rpc; sum > playerBudget {
		t.Errorf("a player takes %.0f bytes, its client's end counted, want %d at most", sum, playerBudget)
	}
	for name, bytes := range map[string]float64{"session": m.session, "rpc": m.rpc, "reliable": m.reliable, "encoder": m.encoder} {
		if bytes < 100 {
			t.Errorf("%s: %.0f bytes cannot be", name, bytes)
		}
	}
}

// BenchmarkPlayerMemory reports the memory per player.
func BenchmarkPlayerMemory(b *testing.B) {
	for _, codec := range rpcdelta.Codecs() {
		b.Run(codec.String(), func(b *testing.B) { benchmarkPlayerMemory(b, codec) })
	}
}

func benchmarkPlayerMemory(b *testing.B, codec rpcdelta.Codec) {
	m := measureMemory(b, codec)
	for b.Loop() { // it is the same each time
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(m.session, "both-sessions-B")
	b.ReportMetric(m.rpc, "rpc-B")
	b.ReportMetric(m.reliable, "reliable-B")
	b.ReportMetric(m.encoder, "client-rpc-B")
}

func heap() float64 {
	runtime.GC()
	runtime.GC() // frees finalized and pooled objects
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// measureMemory measures how a server's heap grows per player. The players' ends allocate nothing
// meanwhile except for the reliable channel.
func measureMemory(t testing.TB, codec rpcdelta.Codec) (m memory) {
	t.Helper()
	const players = 500
	typ, err := schema.Compile[pawn]("Move", 0)
	uplinktest.Must(t, err)
	frames := payloads(t, typ, codec, 2*rpcdelta.DefaultRing)
	request := bindRequest(t, typ.Schema(), codec)

	network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
	uplinktest.Must(t, err)
	srv, err := ds.Listen(uplinktest.Addr, ds.Config{Network: network, AckHz: 1})
	uplinktest.Must(t, err)
	delivered := 0
	uplinktest.Must(t, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[pawn]) { delivered++ }))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()
	conns := make([]*transport.Conn, players)
	sent := 0
	send := func(c *transport.Conn, b []byte) {
		uplinktest.Must(t, c.Send(b))
		sent++
	}
	grown := func(step func(player int)) float64 {
		before := heap()
		for i := range players {
			step(i)
		}
		return (heap() - before) / players
	}
	m.session = grown(func(i int) {
		conns[i], err = transport.Dial(t.Context(), uplinktest.Addr, transport.Config{Network: network, Tick: time.Second}, unheard{})
		uplinktest.Must(t, err)
	})
	m.rpc = grown(func(i int) {
		send(conns[i], request)
		for _, b := range frames {
			send(conns[i], b)
		}
		for delivered := uint64(0); delivered < uint64((i+1)*len(frames)); delivered = srv.Stats().RPCs[0].Frames() {
			runtime.Gosched()
		}
	})
	m.reliable = grown(func(i int) {
		uplinktest.Must(t, conns[i].SendReliable(control.AppendMessage(nil, make([]byte, 3)))) // no handler accepts it
		for srv.Stats().Drops[ds.UnknownRPC] < uint64(i+1) {
			runtime.Gosched()
		}
	})
	if st := srv.Stats(); st.Transport.Open != players {
		t.Errorf("%d players, drops %v", st.Transport.Open, st.Drops)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	uplinktest.Must(t, srv.Close())
	uplinktest.Must(t, <-served)
	if delivered != players*len(frames) {
		t.Errorf("%d frames", delivered)
	}

	encoders := make([]*rpcdelta.Encoder, players)
	m.encoder = grown(func(i int) { encoders[i] = encoder(t, typ, codec, 2*rpcdelta.DefaultRing, func([]byte) {}) })
	runtime.KeepAlive(encoders)
	return m
}

// encoder returns an encoder that has sent n frames, without acks.
func encoder(t testing.TB, typ *schema.Type[pawn], codec rpcdelta.Codec, n int, sent func(payload []byte)) *rpcdelta.Encoder {
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

func payloads(t testing.TB, typ *schema.Type[pawn], codec rpcdelta.Codec, n int) (all [][]byte) {
	encoder(t, typ, codec, n, func(b []byte) { all = append(all, b) })
	return all
}

func bindRequest(t testing.TB, s *schema.Schema, codec rpcdelta.Codec) []byte {
	r := control.BindRequest{
		Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: control.FieldHashes(s),
		RateHz: s.RateHz(), Ring: rpcdelta.DefaultRing, Codec: codec.String(),
	}
	b, err := r.Append(nil)
	uplinktest.Must(t, err)
	return b
}
