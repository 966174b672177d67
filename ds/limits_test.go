package ds_test

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestOutage verifies that no rate limit affects a client whose datagrams are held back for seconds
// and then arrive together, reliable ones included.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		moves, fires := uplinktest.NewJournal(t, 1), uplinktest.NewJournal(t, 2)
		hold := make(chan struct{})
		srv := serve(t, network, ds.Config{},
			handles("Stall", func(*ds.Player, frame) { <-hold }), handles("Move", moves.Handle), handles("Fire", fires.Handle))
		conn := uplinktest.Dial(t, network, client.Config{})
		stall, move, fire := uplinktest.Bind(t, conn, "Stall"), uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Fire", reliably)
		next := uint64(0)
		call := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 60) {
				send(t, move, 1, next)
				send(t, fire, 2, next)
				next++
			}
		}
		call(10 * time.Second)
		send(t, stall, 0, 0)
		call(3 * time.Second) // nothing is received
		close(hold)
		call(10 * time.Second)
		settle(time.Second)
		if m, f := moves.Only(), fires.Only(); m.Frames() != next || f.Frames() != next {
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
		r.mustBind(req)
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

// TestTooManyReliable verifies that the session ends if one more reliable message is above a limit
// or does not fit into the queue, since none may be missing.
func TestTooManyReliable(t *testing.T) {
	const waiting, waitingBytes = 8, int(unsafe.Sizeof(ds.Frame[*schema.Frame]{})+2*unsafe.Sizeof((*ds.Player)(nil))) + 4
	for _, c := range []struct {
		name        string
		cfg         ds.Config
		replies     bool
		least, most int // messages until the session ends
		reason      string
		drop        ds.Drop
	}{
		{"frames", ds.Config{}, false, 512, 1200, "more than 20 calls a second of an RPC bound at 10: ", ds.RateLimited},
		{"waiting frames", ds.Config{Poll: true, Limits: ds.Limits{QueueBytes: waiting * waitingBytes}}, false, waiting, waiting + 30, "the calls for Poll exceed QueueBytes", ds.QueueFull},
		{"replies", ds.Config{}, true, 50, 100 + message.MaxCalls + 2*50, "more than 50 requests to bind, or 50 replies, a second", ds.RateLimited},
	} {
		bubble(t, c.name, func(t *testing.T) {
			network, buttons := perfect(t), buttonsSchema(t)
			var world *ds.World[move]
			left := 0
			c.cfg.Left = func(*ds.Player, error) { left++ }
			c.cfg.Joined = func(p *ds.Player) {
				_, err := world.Offer(p)
				uplinktest.Must(t, err)
			}
			handled := uint64(0)
			srv := serve(t, network, c.cfg, func(s *ds.Server) (err error) {
				world, err = ds.NewWorld(s, "moves", ds.WorldConfig[move]{})
				return err
			}, func(s *ds.Server) error {
				return ds.HandleSchema(s, buttons, func(*ds.Player, ds.Frame[*schema.Frame]) { handled++ })
			})
			r := dialRaw(t, network)
			settle(100 * ms)
			srv.Poll()
			settle(100 * ms)
			req := request(0, buttons, true)
			req.RateHz = 10
			r.mustBind(req)
			next, sent := payloadsOf(t, buttons, rpcdelta.EncoderConfig{Reliable: true}), 0
			message := func() []byte {
				if c.replies {
					return replication.AppendReply(nil, 0, replication.Answer(sent%2))
				}
				return next()
			}
			for sent < 5000 && r.SendReliable(message()) == nil {
				sent++
				settle(5 * ms)
			}
			r.sayReliably(nil, 0, 0, c.reason)
			if sent < c.least || sent > c.most {
				t.Errorf("the session ends after %d messages", sent)
			}
			srv.Poll()
			st := srv.Stats()
			drops := st.Drops
			if !c.replies {
				drops = st.RPCs[1].Drops
			}
			if drops[c.drop] != 1 || left != 1 || !c.replies && handled != st.RPCs[1].Frames() {
				t.Errorf("%d frames were handled, left %d times: %+v", handled, left, st)
			}
		})
	}
}
