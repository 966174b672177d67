package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestSetRedundancy changes the redundancy while a client calls over a lossy link. It applies to
// bound RPCs, to those that are bound later, and after a reconnection.
func TestSetRedundancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0.3, 5, client.Config{Tuning: client.Tuning{Redundancy: rpcdelta.RedundancyOff}, Transport: client.Transport{Timeout: 3 * time.Second}})
		conn := m.conn
		// expect checks the share of frames that do not arrive within 20 s.
		expect := func(what string, redundancy int, lo, hi float64) {
			t.Helper()
			before := m.srv.Stats().RPCs[0]
			m.call(20 * time.Second)
			after := m.srv.Stats().RPCs[0]
			lost, came := float64(after.Missed-before.Missed), float64(after.Frames()-before.Frames())
			if share := lost / (lost + came); share < lo || share > hi {
				t.Errorf("%s: %.3f of the frames are missed, want %v to %v", what, share, lo, hi)
			}
			if got := m.move.Stats().Redundancy; got != redundancy {
				t.Errorf("%s: redundancy %d, want %d", what, got, redundancy)
			}
		}
		expect("off", 0, 0.25, 0.35)
		uplinktest.Must(t, conn.SetRedundancy(3))
		expect("3", 3, 0, 0.03)
		uplinktest.Must(t, conn.SetRedundancy(2))
		m.setLinks(newLink(1))
		m.call(10 * time.Second)
		m.setLinks(newLink(0.3))
		m.call(20 * time.Second)
		expect("2, connected again", 2, 0, 0.05)
		second := uplinktest.Bind(t, conn, "Turn")
		if got := second.Stats().Redundancy; got != 2 {
			t.Errorf("an RPC that is bound later has redundancy %d", got)
		}
		if err := conn.SetRedundancy(16); err == nil || !strings.HasPrefix(err.Error(), "client: SetRedundancy: ") {
			t.Errorf("16: %v", err)
		}
		if got := second.Stats().Redundancy; got != 2 {
			t.Errorf("after an error: redundancy %d", got)
		}
	})
}

// movePrior returns a prior that is trained on the moves of other players.
func movePrior(t *testing.T, salt uint64) *prior.Prior {
	t.Helper()
	typ, err := schema.Compile[uplinktest.Move]("Move", 0)
	uplinktest.Must(t, err)
	r := prior.Recording{Schema: typ.Schema(), Frames: make([]schema.Frame, 600)}
	for i := range r.Frames {
		r.Frames[i] = *typ.Schema().NewFrame()
		m := uplinktest.MoveAt(salt, uint64(i))
		uplinktest.Must(t, typ.Quantize(&r.Frames[i], &m))
	}
	p, err := prior.Train(context.Background(), []prior.Recording{r}, prior.TrainConfig{})
	uplinktest.Must(t, err)
	return p
}

// logged returns a logger and its text.
func logged() (*slog.Logger, *bytes.Buffer) {
	b := &bytes.Buffer{}
	return slog.New(slog.NewTextHandler(b, nil)), b
}

// TestPriors binds with priors that the server has and with others, over a bad link.
func TestPriors(t *testing.T) {
	mine, other := movePrior(t, 2), movePrior(t, 3)
	bits := map[string]uint64{}
	for _, c := range []struct {
		name   string
		client *prior.Prior
		server []*prior.Prior
		falls  uint64
		codec  rpcdelta.Codec
	}{
		{"neither", nil, nil, 0, rpcdelta.Adaptive},
		{"both", mine, []*prior.Prior{other, mine}, 0, rpcdelta.Adaptive},
		{"server", nil, []*prior.Prior{mine}, 0, rpcdelta.Adaptive},
		{"client", mine, []*prior.Prior{other}, 1, rpcdelta.Adaptive},
		{"named", prior.Generic(), nil, 0, rpcdelta.Adaptive},
		{"unused", mine, []*prior.Prior{other}, 0, rpcdelta.RLE},
	} {
		synctest.Test(t, func(t *testing.T) {
			serverLog, serverText := logged()
			clientLog, clientText := logged()
			m := newMatch(t, 0.1, 5, ds.Config{Tuning: ds.Tuning{Priors: c.server}, Logger: serverLog}).dial(client.Config{
				Tuning: client.Tuning{Codec: c.codec, Prior: c.client, Redundancy: rpcdelta.RedundancyOff}, Logger: clientLog,
			})
			m.call(5 * time.Second)
			settle(time.Second)
			if n := m.journal.Only().Frames(); n < 250 {
				t.Errorf("%s: %d frames arrived", c.name, n)
			}
			st, there := m.move.Stats(), m.srv.Stats().RPCs[0]
			if st.PriorFallbacks != c.falls || there.PriorFallbacks != c.falls || there.Drops[ds.Desync] != 0 {
				t.Errorf("%s: %d fallbacks here, %d there, %d desyncs", c.name, st.PriorFallbacks, there.PriorFallbacks, there.Drops[ds.Desync])
			}
			bits[c.name] = st.PayloadBits
			for _, text := range []string{clientText.String(), serverText.String()} {
				if n := strings.Count(text, "prior not known"); n != int(c.falls) {
					t.Errorf("%s: %d lines, want %d:\n%s", c.name, n, c.falls, text)
				}
				if c.falls > 0 && (!strings.Contains(text, "prior="+mine.String()) || !strings.Contains(text, "used="+prior.Generic().String())) {
					t.Errorf("%s: no hashes in\n%s", c.name, text)
				}
			}
		})
	}
	if bits["both"] > bits["neither"]*9/10 {
		t.Errorf("%d bits with the prior, %d without", bits["both"], bits["neither"])
	}
}

// TestLinkStats compares the statistics of a connection with its simulated link.
func TestLinkStats(t *testing.T) {
	for _, link := range []simnet.Config{{}, {Loss: 0.1}, {Loss: 0.2, Burst: 6}} {
		synctest.Test(t, func(t *testing.T) {
			up := link
			up.Delay, up.Seed = 40*ms, 3
			down := simnet.Config{Delay: 40 * ms, Loss: link.Loss / 2, Seed: 4}
			m := &match{t: t, network: uplinktest.NewNetwork(t, up, down), journal: uplinktest.NewJournal(t, 1)}
			m.serve(ds.Config{})
			conn := m.dial(client.Config{Tuning: client.Tuning{Redundancy: rpcdelta.RedundancyAuto}}).conn
			var loss, burst, up1, down1, n float64
			for i := range uint64(6000) {
				m.send()
				time.Sleep(time.Second / 60)
				if i > 1000 && i%10 == 0 {
					st := conn.Stats()
					loss, burst, n = loss+st.RPCs[0].Loss, burst+st.RPCs[0].Burst, n+1
					up1, down1 = up1+st.SentBitsPerSecond, down1+st.ReceivedBitsPerSecond
				}
			}
			st := conn.Stats()
			mean := func(sum float64) float64 { return sum / n }
			if got := mean(loss); math.Abs(got-link.Loss) > 0.15*link.Loss {
				t.Errorf("loss %v", got)
			}
			// Single losses may be consecutive by chance.
			want := max(link.Burst, 1/(1-link.Loss))
			if got := mean(burst); math.Abs(got/want-1) > 0.3 || link.Loss == 0 && got != 1 {
				t.Errorf("burst %v, want %v", got, want)
			}
			if r := st.RPCs[0].Redundancy; (r > 0) != (link.Loss > 0) {
				t.Errorf("redundancy %d", r)
			}
			if math.Abs(st.Loss-down.Loss) > 0.25*down.Loss || st.RTT < 80*ms || st.RTT > 90*ms {
				t.Errorf("the server's loss is %v, the round trip %v", st.Loss, st.RTT)
			}
			tr := st.Transport
			for what, bits := range map[string][2]float64{
				"up":   {mean(up1), 8 * float64(tr.BytesSent+endpoint.IPSize*tr.DatagramsSent) / 100},
				"down": {mean(down1), 8 * float64(tr.BytesReceived+endpoint.IPSize*tr.DatagramsReceived) / 100},
			} {
				if math.Abs(bits[0]/bits[1]-1) > 0.05 {
					t.Errorf("%s: %v bits a second, want %v", what, bits[0], bits[1])
				}
			}
		})
	}
}

// loopback binds Move over real sockets. The channel receives the number of each frame that
// arrives.
func loopback(t testing.TB, cfg client.Config, bind client.BindConfig) (*ds.Server, *client.Conn, *client.Stream[uplinktest.Move], <-chan uint64) {
	t.Helper()
	cfg.Transport.Timeout = time.Minute // for busy machines
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{Limits: ds.Limits{RateSlack: 1e6}, Transport: ds.Transport{Timeout: cfg.Transport.Timeout}})
	uplinktest.Must(t, err)
	got, done := make(chan uint64, 1), make(chan struct{})
	for _, rpc := range []string{"Move", "Turn"} {
		uplinktest.Must(t, ds.Handle(srv, rpc, func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
			select {
			case got <- f.Seq:
			case <-done: // so that the server can close
			}
		}))
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()
	conn, err := client.Dial(t.Context(), srv.Addr().String(), cfg)
	uplinktest.Must(t, err)
	t.Cleanup(func() {
		close(done)
		uplinktest.Must(t, conn.Close())
		uplinktest.Must(t, srv.Close())
		uplinktest.Must(t, <-served)
	})
	return srv, conn, uplinktest.Bind(t, conn, "Move", bind), got
}

// moves returns consecutive calls.
func moves() *[600]uplinktest.Move {
	var m [600]uplinktest.Move
	for i := range m {
		m[i] = uplinktest.MoveAt(1, uint64(i))
	}
	return &m
}

// TestNoAllocations sends frames over real sockets, from Send to the handler: alone, and in pairs
// that share a datagram with those of another RPC.
func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	calls := moves()
	for _, c := range []struct {
		cfg             client.Config
		bind            client.BindConfig
		streams, frames int // per tick
	}{
		{streams: 1, frames: 1},
		{
			client.Config{Tuning: client.Tuning{Codec: rpcdelta.Adaptive, FlushOnly: true}, Bandwidth: 1e9}, client.BindConfig{Delay: uplinktest.Wait(1, 60)}, 2, 2,
		},
	} {
		srv, conn, stream, got := loopback(t, c.cfg, c.bind)
		streams := []*client.Stream[uplinktest.Move]{stream}
		if c.streams == 2 {
			streams = append(streams, uplinktest.Bind(t, conn, "Turn", c.bind))
		}
		next := 0
		tick := func() {
			for range c.frames {
				for _, s := range streams {
					uplinktest.Must(t, uplinktest.Sent(s.Send(&calls[next%len(calls)])))
				}
				next++
			}
			for _, s := range streams {
				uplinktest.Must(t, s.Flush()) // a frame after an urgent one waits
			}
			uplinktest.Must(t, conn.Flush())
			for range c.frames * c.streams {
				<-got
			}
		}
		for range 1000 {
			tick()
		}
		if n := allocs.PerRun(1000, tick); n != 0 {
			t.Errorf("%v allocations per tick", n)
		}
		for _, st := range srv.Stats().RPCs[:c.streams] {
			if n := int(st.Frames()); n != next {
				t.Errorf("%d of %d frames of %s arrived", n, next, st.RPC)
			}
		}
		payloads := uint64(next / c.frames)
		if st := streams[c.streams-1].Stats(); c.streams > 1 && st.Coalesced < payloads*9/10 || st.Messages > payloads*5/4 {
			t.Errorf("%+v", st)
		}
	}
}
