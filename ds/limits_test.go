package ds_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestHonestPlayersAreNotLimited verifies that no rate limit affects clients that keep to their
// declared rates, with all ways to send, over bad links.
func TestHonestPlayersAreNotLimited(t *testing.T) {
	runs := uint64(60)
	if testing.Short() {
		runs = 5
	}
	for seed := range runs {
		rng := rand.New(rand.NewPCG(seed, 0))
		pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
		link := simnet.Config{
			Loss: pick(0, 0.05, 0.2, 0.4), Burst: pick(1, 3, 8), Jitter: time.Duration(pick(0, 5, 50, 300)) * ms,
			Duplicate: pick(0, 0.3), Seed: seed,
		}
		c := coalesced{
			every: 1 + rng.IntN(client.MaxSendEvery), redundancy: int(pick(rpcdelta.RedundancyOff, rpcdelta.RedundancyAuto, 3, rpcdelta.MaxRedundancy)),
			rpcs: 1 + rng.IntN(3), tick: []time.Duration{0, time.Second / 30, flushOnly}[rng.IntN(3)], link: link, late: rng.IntN(2) == 0,
		}
		bubble(t, fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Logf("%+v", c)
			srv, _, _, _ := c.play(t, 900) // fails if anything but late and duplicate payloads is dropped
			if st := srv.Stats(); st.Drops != ([ds.InvalidAck + 1]uint64{}) {
				t.Errorf("drops %v", st.Drops)
			}
		})
	}
}

// TestOutage verifies that no rate limit affects a client whose datagrams are held back for seconds
// and then arrive together, reliable ones included.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		move, fire := uplinktest.NewJournal(t, 1), uplinktest.NewJournal(t, 2)
		hold := make(chan struct{})
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			if err := ds.Handle(s, "Stall", func(*ds.Player, ds.Frame[noField]) { <-hold }); err != nil {
				return err
			}
			if err := ds.Handle(s, "Move", move.Handle); err != nil {
				return err
			}
			return ds.Handle(s, "Fire", fire.Handle)
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		stall, err := client.Bind[noField](t.Context(), conn, "Stall", client.BindConfig{})
		uplinktest.Must(t, err)
		moves, fires := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Fire", client.BindConfig{Reliable: true})
		next := uint64(0)
		call := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 60) {
				m, f := uplinktest.MoveAt(1, next), uplinktest.MoveAt(2, next)
				uplinktest.Must(t, moves.Send(&m))
				uplinktest.Must(t, fires.Send(&f))
				next++
			}
		}
		call(10 * time.Second)
		uplinktest.Must(t, stall.Send(&noField{}))
		call(3 * time.Second) // nothing is received
		close(hold)
		call(10 * time.Second)
		settle(time.Second)
		if m, f := move.Only(), fire.Only(); m.Frames() != next || f.Frames() != next {
			t.Errorf("%d and %d of %d frames came: %+v", m.Frames(), f.Frames(), next, srv.Stats())
		}
	})
}

// TestTooManyFrames calls an RPC far above its declared rate. Frames above the limit do not reach
// the game, and the stream continues.
func TestTooManyFrames(t *testing.T) {
	const rate, hz, seconds = 20, 200, 10
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		req := request(0, buttons, false)
		req.RateHz, req.Frames = rate, 4
		if a := r.bind(req); a.Reason != control.ReasonNone {
			t.Fatalf("%+v", a)
		}
		enc, err := rpcdelta.NewEncoder(buttons, rpcdelta.EncoderConfig{Redundancy: rpcdelta.RedundancyOff})
		uplinktest.Must(t, err)
		f := buttons.NewFrame()
		for range seconds * hz / 4 { // four frames a payload: these are not too many
			for range 4 {
				f.Ints[0] = (f.Ints[0] + 1) & 0xffff
				uplinktest.Must(t, enc.Hold(f))
			}
			b, _ := enc.AppendHeld(nil)
			uplinktest.Must(t, r.Send(b))
			settle(4 * time.Second / hz)
		}
		got := srv.Stats().RPCs[0]
		slack := 2.0 // the default RateSlack
		if most := slack*rate*(seconds+2) + rpcdelta.MaxHeld; float64(got.Frames()) > most || float64(got.Frames()) < most*0.9 {
			t.Errorf("%d frames delivered, want about %v", got.Frames(), most)
		}
		if got.Frames()+got.Drops[ds.RateLimited] != seconds*hz || got.Missed < got.Drops[ds.RateLimited]*9/10 || got.Drops[ds.Desync]+got.Drops[ds.BaselineMissing] != 0 {
			t.Errorf("%+v", got)
		}
		uplinktest.Must(t, r.Close()) // no more acks arrive
		if a := r.acks[len(r.acks)-1]; uint64(a.Seq) < seconds*hz-50 || a.ResetReason != nil {
			t.Errorf("the last ack is %+v", a)
		}
	})
}

// TestTooManyMessages verifies that most payloads of a flood are not decoded.
func TestTooManyMessages(t *testing.T) {
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		if a := r.bind(request(0, buttons, false)); a.Reason != control.ReasonNone {
			t.Fatalf("%+v", a)
		}
		const messages = 10_000 // in a second
		frame := []byte{0x80, 0, 0, 0, 0}
		bundle := control.NewBundler(1000)
		for range control.MaxBundle {
			bundle.Add(frame)
		}
		b := bundle.Take()
		for range messages / 10 {
			for range 10 {
				uplinktest.Must(t, r.Send(b))
			}
			settle(time.Millisecond)
		}
		st := srv.Stats()
		looked := uint64(0)
		for _, rpc := range st.RPCs {
			for _, n := range rpc.Drops {
				looked += n
			}
		}
		if limited := st.Drops[ds.RateLimited]; limited < messages*9/10 || looked > 2*3*(60+50) {
			t.Errorf("%d messages are dropped at once, %d payloads are looked at", limited, looked)
		}
	})
}

// TestTooManyReliable verifies that reliable frames above the limit end the session, since none may
// be missing.
func TestTooManyReliable(t *testing.T) {
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		req := request(0, buttons, true)
		req.RateHz = 10
		if a := r.bind(req); a.Reason != control.ReasonNone {
			t.Fatalf("%+v", a)
		}
		enc, err := rpcdelta.NewEncoder(buttons, rpcdelta.EncoderConfig{Reliable: true})
		uplinktest.Must(t, err)
		sent := 0
		for ; sent < 5000; sent++ {
			b, _, err := enc.AppendFrame(nil, buttons.NewFrame())
			uplinktest.Must(t, err)
			if err := r.SendReliable(b); err != nil {
				break
			}
			settle(5 * ms)
		}
		if sent < 512 || sent > 1200 {
			t.Errorf("the session ends after %d frames", sent)
		}
		if got := srv.Stats().RPCs[1]; got.Drops[ds.RateLimited] != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// TestBindLimits verifies the limits of the number and the rate of bindings.
func TestBindLimits(t *testing.T) {
	for _, c := range []struct {
		cfg  ds.Config
		want int
	}{{ds.Config{}, 8}, {ds.Config{MaxBindings: 3}, 3}} {
		besides(t, c.cfg, func(t *testing.T, _ *uplinktest.Server, r *raw, buttons *schema.Schema) {
			for n := range 10 {
				req := request(n, buttons, false)
				req.RateHz = float64(50 + n) // each a schema of its own
				want := control.ReasonNone
				if n >= c.want {
					want = control.ReasonNumber
				}
				if a := r.bind(req); a.Reason != want {
					t.Errorf("number %d: %+v", n, a)
				}
			}
		})
	}
	besides(t, ds.Config{MaxRate: 120}, func(t *testing.T, _ *uplinktest.Server, r *raw, buttons *schema.Schema) {
		req := request(0, buttons, false)
		req.RateHz = 121
		if a := r.bind(req); a.Reason != control.ReasonInvalid {
			t.Errorf("%+v", a)
		}
		req.RateHz = 120
		if a := r.bind(req); a.Reason != control.ReasonNone {
			t.Errorf("%+v", a)
		}
	})
}

// TestFairQueue verifies that a flooding player does not crowd out another while the game does not
// poll.
func TestFairQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queue = 200
		network := perfect(t)
		got := map[*ds.Player]int{}
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, QueueBytes: queue * (moveBytes + 8)}, handles("Move", func(p *ds.Player, _ ds.Frame[uplinktest.Move]) { got[p]++ }))
		flood := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move", client.BindConfig{RateHz: 250})
		quiet := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		srv.Poll()
		play(t, flood, 1, 0, 500, 250)
		play(t, quiet, 2, 0, 60, 60)
		settle(100 * ms)
		srv.Poll()
		least, most := 1000, 0
		for _, n := range got {
			least, most = min(least, n), max(most, n)
		}
		// Half of the room and its half of the other one; the other player has a fourth.
		if len(got) != 2 || most < queue*3/4-8 || most > queue*3/4+8 || least < queue/4-5 || least > queue/4+5 {
			t.Errorf("%v of %d", got, queue)
		}
	})
}

// TestFloodOfReplies verifies that a client that replies to an offer too often loses its session.
func TestFloodOfReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		var world *ds.World[uplinktest.Move]
		cfg := ds.Config{Joined: func(p *ds.Player) {
			_, err := world.Offer(p)
			uplinktest.Must(t, err)
		}}
		srv := uplinktest.Serve(t, network, cfg, func(s *ds.Server) (err error) {
			world, err = ds.NewWorld(s, "moves", ds.WorldConfig[uplinktest.Move]{})
			return err
		})
		r := dialRaw(t, network)
		settle(100 * ms)
		const rate, burst = 50, 100 + 8 // with the requests to bind 8 RPCs at once
		sent := 0
		for end := time.Now().Add(time.Second); time.Now().Before(end) && r.SendReliable(replication.AppendReply(nil, 0, replication.Answer(sent%2))) == nil; sent++ {
			settle(ms)
		}
		if err := r.Send([]byte{0}); !errors.Is(err, transport.ErrClosedByPeer) || !strings.Contains(err.Error(), "too many requests to bind and replies to offers") {
			t.Errorf("after %d replies: %v", sent, err)
		}
		if sent < rate || sent > burst+2*rate || srv.Stats().Drops[ds.RateLimited] != 1 {
			t.Errorf("%d replies were sent, %v", sent, srv.Stats().Drops)
		}
	})
}
