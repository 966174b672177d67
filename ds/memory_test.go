package ds_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/ignore"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Limits of the heap of a player on the DS, in bytes.
const (
	rpcBudget      = 16 << 10 // of an RPC of 20 components
	sessionsBudget = 21 << 10 // of both ends of a session
	// idleBudget is that of a session whose reliable channel is idle. Together with a stream of
	// snapshots, it has 16 KiB.
	idleBudget = 6 << 10
)

func TestPlayerFitsItsBudget(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	for _, codec := range rpcdelta.Codecs() {
		bubble(t, codec.String(), func(t *testing.T) {
			m := measureMemory(t, codec)
			t.Logf("%+v", m)
			if m["rpc-B"] > rpcBudget || m["both-sessions-B"] > sessionsBudget {
				t.Errorf("want at most %d bytes for an RPC, and %d for both ends of a session", rpcBudget, sessionsBudget)
			}
			for name, bytes := range m {
				if bytes < 100 {
					t.Errorf("%s: %.0f bytes cannot be", name, bytes)
				}
			}
		})
	}
}

// TestIdleSessionFitsItsBudget measures by how much the heap shrinks when the DS ends sessions
// whose reliable channels were used in both directions and are idle. The clients learn nothing of
// the end, so that only the DS's objects are freed.
func TestIdleSessionFitsItsBudget(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	bubble(t, "", func(t *testing.T) {
		const count = 200
		network := linkedBy(t, 50*ms, simnet.Config{})
		joined, greeted := make(chan *ds.Player, count), 0
		serve(t, network, ds.Config{
			Joined:    func(p *ds.Player) { joined <- p },
			OnMessage: func(*ds.Player, []byte) { greeted++ },
		})
		players := make([]*ds.Player, count)
		for i := range players {
			conn := uplinktest.Dial(t, network, client.Config{})
			players[i] = <-joined
			uplinktest.Must(t, players[i].SendReliable(make([]byte, ds.MaxMessage)))
			uplinktest.Must(t, conn.SendReliable(make([]byte, ds.MaxMessage)))
		}
		settle(5 * time.Second)
		before := float64(allocs.Heap())
		gone := simnet.Config{Loss: 1}
		uplinktest.Must(t, network.Set(gone, gone))
		for _, p := range players {
			p.Kick("")
		}
		clear(players)
		settle(100 * ms)
		session := (before - float64(allocs.Heap())) / count
		t.Logf("%.0f bytes per session", session)
		if session > idleBudget || session < 1000 || greeted != count {
			t.Errorf("%.0f bytes per session after %d messages, want at most %d", session, greeted, idleBudget)
		}
	})
}

// measureMemory measures how the heap grows per player, in bytes: by the session on both ends,
// encrypted with GCM (package transport measures the DS's end by itself), on the DS by an RPC of 20
// components with a ring of 64, full, on both ends by the reliable channel, once it is used, and on
// the client by the RPC. The players' ends allocate nothing else meanwhile.
func measureMemory(t *testing.T, codec rpcdelta.Codec) map[string]float64 {
	t.Helper()
	const players = 500
	typ, err := schema.Compile[uplinktest.Pawn]("Move", 0)
	uplinktest.Must(t, err)
	const ring = 2 * rpcdelta.DefaultRing // frames, which fill a ring
	var frames [][]byte
	encoder(t, typ, codec, ring, func(b []byte) { frames = append(frames, b) })
	request := bindRequest(t, typ.Schema(), codec)

	network, err := simnet.NewNetwork(simnet.Config{}, simnet.Config{})
	uplinktest.Must(t, err)
	srv, err := ds.Listen(uplinktest.Addr, ds.Config{Network: network, Tuning: ds.Tuning{AckHz: 1}})
	uplinktest.Must(t, err)
	delivered := 0
	uplinktest.Must(t, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[uplinktest.Pawn]) { delivered++ }))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()
	conns := make([]*endpoint.Conn, players)
	grown := func(step func(player int)) float64 {
		before := float64(allocs.Heap())
		for i := range players {
			step(i)
		}
		return (float64(allocs.Heap()) - before) / players
	}
	m := map[string]float64{}
	m["both-sessions-B"] = grown(func(i int) {
		conns[i], err = endpoint.Dial(t.Context(), uplinktest.Addr, endpoint.Config{Network: network, Tick: time.Second}, ignore.Handler{})
		uplinktest.Must(t, err)
	})
	m["rpc-B"] = grown(func(i int) {
		uplinktest.Must(t, conns[i].Send(request))
		settle(50 * ms) // the server answers few requests per tick
		for _, b := range frames {
			uplinktest.Must(t, conns[i].Send(b))
			synctest.Wait() // queues of a burst would count
		}
	})
	m["reliable-B"] = grown(func(i int) {
		uplinktest.Must(t, conns[i].SendReliable(message.AppendMessage(nil, make([]byte, 3)))) // no handler accepts it
		synctest.Wait()
	})
	if st := srv.Stats(); st.Transport.Open != players || st.Drops[ds.UnknownRPC] != players {
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
	m["client-rpc-B"] = grown(func(i int) { encoders[i] = encoder(t, typ, codec, ring, func([]byte) {}) })
	runtime.KeepAlive(encoders)
	return m
}

// encoder returns an encoder that has sent n frames, without acks.
func encoder(t testing.TB, typ *schema.Type[uplinktest.Pawn], codec rpcdelta.Codec, n int, sent func(payload []byte)) *rpcdelta.Encoder {
	enc, err := rpcdelta.NewEncoder(typ.Schema(), rpcdelta.EncoderConfig{Codec: codec})
	uplinktest.Must(t, err)
	f := typ.Schema().NewFrame()
	for i := range n {
		call := uplinktest.PawnAt(i)
		uplinktest.Must(t, typ.Quantize(f, &call))
		b, _, err := enc.AppendFrame(nil, f)
		uplinktest.Must(t, err)
		sent(b)
	}
	return enc
}

func bindRequest(t testing.TB, s *schema.Schema, codec rpcdelta.Codec) []byte {
	r := request(0, s, false)
	r.Codec = codec.String()
	b, err := r.Append(nil)
	uplinktest.Must(t, err)
	return b
}
