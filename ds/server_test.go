package ds_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestServe ends Serve in each way.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		listen := func() (*ds.Server, chan error, context.CancelFunc) {
			srv, err := ds.Listen(uplinktest.Addr, ds.Config{Network: network})
			uplinktest.Must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- srv.Serve(ctx) }()
			settle(time.Second)
			return srv, served, cancel
		}
		srv, served, cancel := listen()
		cancel()
		uplinktest.Must(t, errors.Join(<-served, srv.Close(), srv.Close()))

		srv, served, cancel = listen()
		twice := srv.Serve(t.Context())
		uplinktest.Must(t, errors.Join(srv.Close(), <-served))
		if twice == nil || srv.Serve(t.Context()) == nil {
			t.Error("it serves twice, or after Close")
		}
		cancel()

		_, served, cancel = listen()
		defer cancel()
		network.Crash(t, uplinktest.Addr)
		if err := <-served; err == nil || !strings.HasPrefix(err.Error(), "ds: ") {
			t.Errorf("without a socket: %v", err)
		}
	})
}

var errTenth = errors.New("every tenth is refused")

// TestPlayerStats verifies a player's id, address and round-trip time, and that the players' counts
// add up to those of the server.
func TestPlayerStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Jitter: 20 * ms, Seed: 70})
		var players []*ds.Player
		ids, addrs := map[uint64]bool{}, map[netip.AddrPort]bool{}
		journal := uplinktest.NewJournal(t, 1)
		srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) { players = append(players, p) }},
			handles("Move", func(p *ds.Player, f frame) {
				ids[p.ID()], addrs[p.Addr()] = true, true
				if d := time.Since(f.Received); d != 0 {
					t.Errorf("received %v ago", d)
				}
				journal.Handle(p, f)
			}),
			validates("Move", func(_ *ds.Player, f frame) error {
				if f.Seq%50 == 7 {
					return errTenth
				}
				return nil
			}))
		for i := range 3 {
			play(t, join(t, network, "Move"), 1, 0, 300*(i+1), 60)
		}
		settle(time.Second)
		dialRaw(t, network).say([]byte{0, 0, 0, 0})
		settle(time.Second)
		var sum ds.PlayerStats
		for i, p := range players {
			st := p.Stats()
			if i < 3 && (st.Frames < uint64(200*(i+1)) || p.RTT() != st.Transport.RTT || p.RTT() < 60*ms || p.RTT() > 120*ms ||
				st.Transport.DatagramsReceived < st.Frames/2 || p.Rejected() != st.Drops[ds.Rejected]) {
				t.Errorf("player %d: %+v", i, st)
			}
			sum.Frames += st.Frames
			sum.Missed += st.Missed
			for d, n := range st.Drops {
				sum.Drops[d] += n
			}
		}
		all := srv.Stats()
		for d, n := range all.RPCs[0].Drops {
			all.Drops[d] += n
		}
		if sum.Missed != all.RPCs[0].Missed || sum.Frames != all.RPCs[0].Frames() || sum.Drops != all.Drops {
			t.Errorf("%+v, but %+v", sum, all)
		}
		if sum.Drops[ds.UnknownRPC] != 1 || sum.Drops[ds.Late] == 0 || sum.Drops[ds.Rejected] < 20 {
			t.Errorf("%+v", sum)
		}
		listed := slices.Collect(srv.Players())
		for _, p := range players {
			if !slices.Contains(listed, p) {
				t.Errorf("player %d is not listed", p.ID())
			}
		}
		if len(listed) != 4 || len(ids) != 3 || len(addrs) != 3 {
			t.Errorf("%d players, ids %v, addresses %v", len(listed), ids, addrs)
		}
	})
}

// TestPriorOfAnswer verifies that the answer names the prior that is used, also if the request is
// repeated, and if the RPC is bound with another one.
func TestPriorOfAnswer(t *testing.T) {
	train := func(frames int) *prior.Prior {
		r := prior.Recording{Schema: buttonsSchema(t)}
		for i := range frames {
			f := r.Schema.NewFrame()
			f.Ints[0] = int32(i / 9 % 4)
			r.Frames = append(r.Frames, *f)
		}
		p, err := prior.Train(t.Context(), []prior.Recording{r}, prior.TrainConfig{})
		uplinktest.Must(t, err)
		return p
	}
	old, now, generic := train(100), train(200), prior.Generic().Hash()
	for _, c := range []struct {
		codec       string
		asks, wants uint64
		fallbacks   uint64
	}{
		{"adaptive", old.Hash(), old.Hash(), 0},
		{"adaptive", now.Hash(), now.Hash(), 0},
		{"adaptive", generic, generic, 0},
		{"adaptive", 0, generic, 1},
		{"adaptive", 12345, generic, 1},
		{"rle", 12345, 0, 0},
		{"rle", old.Hash(), 0, 0},
	} {
		besides(t, ds.Config{Tuning: ds.Tuning{Priors: []*prior.Prior{now, old}}}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
			req := request(0, buttons, false)
			req.Codec, req.Prior = c.codec, c.asks
			for _, reason := range []message.Reason{message.ReasonNone, message.ReasonNone, message.ReasonNumber} {
				if reason == message.ReasonNumber {
					req.Prior++
				}
				if a := r.bind(req); a.Reason != reason || a.Prior != c.wants {
					t.Errorf("%s, prior %x: %+v", c.codec, req.Prior, a)
				}
			}
			if st := srv.Stats().RPCs; st[0].PriorFallbacks != c.fallbacks || st[1].PriorFallbacks != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestValidate verifies that rejected frames are not delivered, and count as missed unless they are
// late, without an effect on the codec.
func TestValidate(t *testing.T) {
	for name, cfg := range map[string]ds.Config{"serve": {}, "poll": {Poll: true}, "late": {Tuning: ds.Tuning{DeliverLate: true}}} {
		bubble(t, name, func(t *testing.T) {
			const frames = 1200
			network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Jitter: 30 * ms, Seed: 50})
			journal := uplinktest.NewJournal(t, 1)
			var player *ds.Player
			refused := uint64(0)
			refuses := func(seq uint64) bool { return seq%5 == 3 }
			srv := serve(t, network, cfg, handles("Move", journal.Handle), validates("Move", func(p *ds.Player, f frame) error {
				player = p
				if !refuses(f.Seq) || f.Late != cfg.Tuning.DeliverLate { // the journal needs the newest frame
					return nil
				}
				refused++
				return errTenth
			}))
			conn := uplinktest.Dial(t, network, client.Config{Tuning: client.Tuning{Redundancy: rpcdelta.RedundancyOff}})
			move := uplinktest.Bind(t, conn, "Move")
			for i := range uint64(frames) {
				play(t, move, 1, i, 1, 60)
				srv.Poll()
			}
			settle(time.Second)
			srv.Poll()
			log, got, sent := journal.Only(), srv.Stats().RPCs[0], move.Stats()
			if !cfg.Tuning.DeliverLate && slices.ContainsFunc(log.Seen(), refuses) || log.Frames() < frames/2 {
				t.Errorf("%d frames delivered: %v", log.Frames(), log.Seen())
			}
			if log.Frames()+log.Missed != log.Next { // the journal checks Missed of each frame
				t.Errorf("%d delivered and %d missed of %d", log.Frames(), log.Missed, log.Next)
			}
			if refused < 40 || got.Drops[ds.Rejected] != refused || player.Rejected() != refused || got.Frames() != log.Frames()+refused {
				t.Errorf("%d refused, counted %+v, of the player %d", refused, got, player.Rejected())
			}
			if got.Drops[ds.Desync]+got.Drops[ds.BaselineMissing] != 0 || sent.Delta < frames*9/10 {
				t.Errorf("the codec suffers: %+v, sent %+v", got, sent)
			}
		})
	}
}

// TestMaxRejected verifies that a session ends after too many rejected frames, with a reason, and
// that frames that wait for Poll are not delivered.
func TestMaxRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		delivered, left := 0, 0
		srv := serve(t, network, ds.Config{Poll: true, Limits: ds.Limits{MaxRejected: 3}, Left: func(*ds.Player, error) { left++ }},
			handles("Move", func(*ds.Player, frame) { delivered++ }),
			validates("Move", func(_ *ds.Player, f frame) error {
				if f.Seq >= 5 {
					return errTenth
				}
				return nil
			}))
		move := join(t, network, "Move")
		play(t, move, 1, 0, 50, 60)
		srv.Poll()
		settle(time.Second)
		srv.Poll()
		m := uplinktest.MoveAt(1, 50)
		if _, err := move.Send(&m); !errors.Is(err, transport.ErrLimit) || !strings.Contains(err.Error(), "3 rejected frames, MaxRejected is 3") {
			t.Errorf("the client is told %v", err)
		}
		if st := srv.Stats().RPCs[0]; delivered != 5 || left != 1 || st.Drops[ds.Rejected] != 3 {
			t.Errorf("%d delivered, left %d times, %+v", delivered, left, st)
		}
	})
}
