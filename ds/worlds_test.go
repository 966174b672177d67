package ds_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestSnapshots sends worlds of several sizes over links with loss, delay and reordering, and
// checks that every snapshot that arrives equals the one sent.
func TestSnapshots(t *testing.T) {
	medium := simnet.Config{Loss: 0.05, Jitter: 10 * ms}
	for _, c := range []struct {
		count int
		rtt   time.Duration
		link  simnet.Config
		ackHz float64
		known bool    // the initial state
		blank bool    // it is empty, so that the first snapshots need several datagrams
		least float64 // minimum share of snapshots that are received
	}{
		{count: 20, rtt: 20 * ms, least: 0.97},
		{count: 100, rtt: 100 * ms, link: medium, known: true, ackHz: 60, least: 0.9},
		{count: 500, rtt: 100 * ms, link: medium, least: 0.7},
		{count: 500, rtt: 100 * ms, link: medium, blank: true, least: 0.6},
		{count: 100, rtt: 300 * ms, link: simnet.Config{Loss: 0.2, Burst: 4, Duplicate: 0.2}, ackHz: 10, least: 0.6},
	} {
		if testing.Short() && c.count > 100 {
			continue
		}
		bubble(t, fmt.Sprintf("%+v", c), func(t *testing.T) {
			cfg, view := ds.WorldConfig[mover]{}, client.SnapshotConfig[mover]{AckHz: c.ackHz}
			if !c.blank {
				cfg.Initial = initial(c.count)
			}
			if c.known {
				view.Initial = initial(c.count)
			}
			network := linkedBy(t, c.rtt, c.link)
			a, srv, joined := serveArena(t, network, c.count, 500, cfg)
			conn := uplinktest.Dial(t, network, client.Config{})
			_, err := a.Offer(<-joined)
			uplinktest.Must(t, err)
			w := newCopier(t, a)
			view.Handle = w.snapshot
			v, err := client.SubscribeSnapshots(t.Context(), conn, "movers", view)
			uplinktest.Must(t, err)
			settle(time.Second)
			const ticks = 600
			a.run(1, ticks)
			settle(time.Second)

			st, got := srv.Stats().Replication[0], v.Stats()
			if float64(len(w.came)) < c.least*ticks || uint64(len(w.came)) != got.Messages {
				t.Errorf("%d of %d snapshots came, %d counted", len(w.came), ticks, got.Messages)
			}
			if got.Malformed+got.BaselineMissing != 0 || st.InvalidAcks != 0 || st.Unsent != 0 || st.Ready != 1 || st.Acked > got.Messages {
				t.Errorf("sent %+v, got %+v", st, got)
			}
			if (got.InitialBytes == 0) != (c.known || c.blank) || got.InitialBytes != st.InitialBytes || got.InitialBytes != got.Initial {
				t.Errorf("initial state of %d bytes, %d sent, %d came", got.Initial, st.InitialBytes, got.InitialBytes)
			}
			if c.blank && (st.Fragmented == 0 || got.Fragments == 0) || got.Datagrams > st.Datagrams {
				t.Errorf("%d messages sent in fragments, of which %d came", st.Fragmented, got.Fragments)
			}
			if c.link.Loss == 0 && (got.Messages != st.Messages || st.Acked != st.Messages) {
				t.Errorf("%d sent, %d came, %d acked, though nothing is lost", st.Messages, got.Messages, st.Acked)
			}
			var latest client.Snapshot[mover]
			if !v.Latest(&latest) || latest.Tick != w.newest || latest.Time != time.Duration(latest.Tick)*time.Second/60 {
				t.Errorf("latest is of tick %d at %v", latest.Tick, latest.Time)
			}
		})
	}
}

// TestStates sends state of worlds over links with loss, delay and reordering, within a bandwidth.
// It checks that every update equals the server's state, that inputs of every tick are received,
// and that objects at rest are in the end as at the server.
func TestStates(t *testing.T) {
	medium := simnet.Config{Loss: 0.05, Jitter: 10 * ms}
	for _, c := range []struct {
		count     int
		rtt       time.Duration
		link      simnet.Config
		cfg       ds.StateConfig
		every     uint64 // ticks per message
		ackHz     float64
		fragments bool
	}{
		{count: 20, rtt: 20 * ms, every: 1},
		{count: 200, rtt: 100 * ms, link: medium, every: 1},
		{count: 200, rtt: 100 * ms, link: medium, cfg: ds.StateConfig{Bandwidth: 24_000}, every: 1, ackHz: 60},
		{count: 300, rtt: 100 * ms, link: medium, cfg: ds.StateConfig{Bandwidth: 4_000_000}, every: 1, fragments: true},
		{count: 100, rtt: 300 * ms, link: simnet.Config{Loss: 0.2, Burst: 4, Duplicate: 0.2}, every: 3, ackHz: 10, fragments: true},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Rate: 20_000, Jitter: 5 * ms}, cfg: ds.StateConfig{Bandwidth: 2_000_000, MinBandwidth: 32_000}, every: 1},
	} {
		if testing.Short() && c.count > 100 {
			continue
		}
		bubble(t, fmt.Sprintf("%+v", c), func(t *testing.T) {
			up, down := c.link, c.link
			up.Delay, up.Rate, down.Delay, down.Seed = c.rtt/2, 0, c.rtt/2, 1
			network := uplinktest.NewNetwork(t, up, down)
			const rest, ticks = 400, 840
			a, srv, joined := serveArena(t, network, c.count, rest, ds.WorldConfig[mover]{SendHz: 60 / float64(c.every)})
			got := newCopier(t, a)
			conn := uplinktest.Dial(t, network, client.Config{})
			a.offer(<-joined, c.cfg)
			v, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: got.update, AckHz: c.ackHz})
			uplinktest.Must(t, err)
			settle(time.Second)
			for tick := c.every; tick <= ticks; tick += c.every {
				a.step(tick)
				time.Sleep(time.Duration(c.every) * time.Second / 60)
			}
			settle(time.Second)
			got.whole(ticks)

			st, in := srv.Stats().Replication[0], v.Stats()
			limit := c.cfg.Bandwidth
			if limit == 0 {
				limit = 256_000 // the default
			}
			if bits := 8 * float64(st.WireBytes()) / (ticks / 60); bits > 1.01*float64(limit) {
				t.Errorf("%.0f bits a second, want at most %d", bits, limit)
			}
			if in.Malformed+in.BaselineMissing+in.Desync+in.Unpolled != 0 || st.InvalidAcks != 0 || st.Unsent != 0 || st.Ready != 1 || st.Acked > in.Messages {
				t.Errorf("sent %+v, got %+v", st, in)
			}
			if in.Updates != uint64(got.updates) || in.Updates > st.Updates || st.Updates == 0 {
				t.Errorf("%d updates came, %d counted of %d", got.updates, in.Updates, st.Updates)
			}
			if c.fragments != (st.Fragmented > 0) || got.firsts != 1 {
				t.Errorf("%d messages in fragments, %d firsts", st.Fragmented, got.firsts)
			}
			if share := 1 - float64(in.Messages)/float64(st.Messages); c.cfg.MinBandwidth != 0 && share > 0.06 {
				t.Errorf("%.3f of the messages were lost to a queue", share)
			}
			if least := 0.98 * ticks; c.every == 1 && float64(len(got.inputs)-got.missing) < least {
				t.Errorf("inputs of %d ticks came, of %d more that they are missing", len(got.inputs)-got.missing, got.missing)
			}
		})
	}
}

// TestTwoWorlds offers two worlds to two players. One subscribes to both; the other joins later.
// The views continue after the server has crashed and restarted with its worlds at another tick.
func TestTwoWorlds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		var srv *uplinktest.Server
		var all []*arena
		restart := func() {
			srv = serve(t, network, ds.Config{Joined: func(p *ds.Player) {
				for _, a := range all {
					_, err := a.Offer(p)
					uplinktest.Must(t, err)
				}
			}}, func(s *ds.Server) error {
				all = []*arena{
					newArena(t, s, "near", 40, never, ds.WorldConfig[mover]{Initial: initial(40)}),
					newArena(t, s, "far", 30, never, ds.WorldConfig[mover]{SendHz: 20}),
				}
				return nil
			})
		}
		restart()
		subscribe := func(c *client.Conn, a *arena, name string) (*copier, *client.SnapshotView[mover]) {
			w := newCopier(t, a)
			v, err := client.SubscribeSnapshots(t.Context(), c, name, client.SnapshotConfig[mover]{Handle: w.snapshot, Interpolate: &interpolate.Config{}})
			uplinktest.Must(t, err)
			return w, v
		}
		run := func(first, last uint64) {
			for tick := first; tick <= last; tick++ {
				all[0].step(tick)
				all[1].step(tick)
				time.Sleep(time.Second / 60)
			}
		}
		both := uplinktest.Dial(t, network, client.Config{})
		near, v := subscribe(both, all[0], "near")
		far, _ := subscribe(both, all[1], "far")
		run(1, 120)
		late, _ := subscribe(uplinktest.Dial(t, network, client.Config{}), all[0], "near")
		run(121, 300)
		settle(time.Second)
		if len(near.came) < 270 || len(far.came) < 85 || len(far.came) > 101 || len(late.came) < 150 {
			t.Errorf("%d, %d and %d snapshots came", len(near.came), len(far.came), len(late.came))
		}
		st := srv.Stats().Replication
		if len(st) != 2 || st[0].Name != "far" || st[0].Players != 2 || st[0].Ready != 1 || st[1].Ready != 2 {
			t.Errorf("%+v", st)
		}
		if c := both.Stats().Replication; len(c) != 2 || c[0].Name != "near" || c[0].Messages != uint64(len(near.came)) {
			t.Errorf("the client counts %+v", c)
		}
		first := v.Stats()
		network.Crash(t, uplinktest.Addr)
		settle(time.Second)
		restart()
		for w, a := range map[*copier]*arena{near: all[0], far: all[1], late: all[0]} {
			w.reset(a)
		}
		settle(5 * time.Second)
		run(1, 200)
		settle(time.Second)
		if st := v.Stats(); len(near.came) < 170 || st.InitialBytes != first.InitialBytes || first.InitialBytes == 0 || st.Messages < first.Messages+170 {
			t.Errorf("%d snapshots came after the crash; before %+v, then %+v", len(near.came), first, st)
		}
		var s interpolate.Sample[mover]
		if !v.Sample(time.Now(), &s) || s.Time < time.Second || s.Time > 6*time.Second {
			t.Errorf("%v is shown", s.Time)
		}
		uplinktest.Must(t, v.Err())
	})
}

// TestRejoin checks that a client that resubscribes at once, as when a level is loaded, soon
// receives the new stream, after messages and acks of the old one that are still in flight: objects
// that were removed in between are gone. In some rounds the server stops the stream too.
func TestRejoin(t *testing.T) {
	for name, cfg := range map[string]*ds.StateConfig{"snapshots": nil, "state": {}} {
		bubble(t, name, func(t *testing.T) {
			network := linkedBy(t, 150*ms, simnet.Config{Loss: 0.05, Jitter: 30 * ms})
			a, srv, joined := serveArena(t, network, 30, never, ds.WorldConfig[mover]{})
			conn := uplinktest.Dial(t, network, client.Config{})
			player := <-joined
			var s interface {
				Stop()
				Ready() bool
				Send() error
			}
			offer := func() {
				var err error
				if cfg != nil {
					s = a.offer(player, *cfg)
				} else if s, err = a.Offer(player); err != nil {
					t.Fatal(err)
				}
			}
			subscribe := func(c *copier) (end func() error) {
				if cfg != nil {
					v, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: c.update})
					uplinktest.Must(t, err)
					return v.Close
				}
				v, err := client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{Handle: c.snapshot})
				uplinktest.Must(t, err)
				return v.Close
			}
			offer()
			tick := uint64(1)
			for round := range 12 / thin(2) {
				if round%5 == 4 {
					s.Stop()
					if s.Ready() || s.Send() == nil {
						t.Error("sent after Stop")
					}
					offer()
				}
				got := newCopier(t, a)
				end := subscribe(got)
				if round%3 == 2 { // within the first round trip
					a.run(tick, tick+9)
					tick += 10
					uplinktest.Must(t, end())
					continue
				}
				last := tick + 200
				a.rest = tick + 20 // some vanish
				a.run(tick, last)
				if cfg != nil {
					got.whole(last)
				}
				if got.newest+30 < last {
					t.Errorf("round %d: the newest is tick %d, want about %d", round, got.newest, last)
				}
				a.rest = never // and are back
				a.run(last+1, last+100)
				tick = last + 101
				uplinktest.Must(t, end())
			}
			settle(time.Second)
			if n, st := a.step(tick), srv.Stats().Replication[0]; n != 0 || cfg != nil && st.InvalidAcks != 0 || st.Messages == 0 || st.Ready != 0 || st.Players != 1 {
				t.Errorf("sent to %d after the end: %+v", n, st)
			}
			player.Kick("enough")
			settle(time.Second)
			if st := srv.Stats().Replication[0]; st.Players != 0 {
				t.Errorf("after the end: %+v", st)
			}
		})
	}
}

// TestStatesAndSnapshots sends one world to two players by different codecs. One of them then
// changes to the other codec.
func TestStatesAndSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		a, srv, joined := serveArena(t, network, 50, never, ds.WorldConfig[mover]{})
		one := uplinktest.Dial(t, network, client.Config{})
		first := <-joined
		two := uplinktest.Dial(t, network, client.Config{})
		second := <-joined
		a.offer(first, ds.StateConfig{})
		snap, err := a.Offer(second)
		uplinktest.Must(t, err)
		got, late := newCopier(t, a), newCopier(t, a)
		v, err := client.SubscribeState(t.Context(), one, "movers", client.StateConfig[mover]{})
		uplinktest.Must(t, err)
		w, err := client.SubscribeSnapshots(t.Context(), two, "movers", client.SnapshotConfig[mover]{})
		uplinktest.Must(t, err)
		settle(time.Second)
		tick, polled := uint64(0), 0
		run := func(ticks int) {
			for range ticks {
				tick++
				if n := a.step(tick); n != 2 {
					t.Fatalf("tick %d was sent to %d", tick, n)
				}
				time.Sleep(time.Second / 60)
				polled += v.Poll(got.update)
			}
			settle(time.Second)
			polled += v.Poll(got.update)
		}
		run(200)
		if st := v.Stats(); st.Messages < 180 || uint64(polled) != st.Messages || st.Unpolled != 0 || w.Stats().Messages < 180 {
			t.Errorf("%d polled, %+v, snapshots %+v", polled, st, w.Stats())
		}
		// Each refuses the other codec, at both ends.
		if _, err := a.Offer(first); err == nil || !strings.Contains(err.Error(), "Stop") {
			t.Errorf("offered both ways: %v", err)
		}
		uplinktest.Must(t, w.Close())
		if _, err := client.SubscribeState(t.Context(), two, "movers", client.StateConfig[mover]{}); err == nil || !strings.Contains(err.Error(), `"snapshot"`) {
			t.Errorf("taken by the other codec: %v", err)
		}
		snap.Stop()
		settle(time.Second)
		a.offer(second, ds.StateConfig{})
		_, err = client.SubscribeState(t.Context(), two, "movers", client.StateConfig[mover]{Handle: late.update})
		uplinktest.Must(t, err)
		settle(time.Second)
		a.rest = 220
		run(500)
		got.whole(tick)
		late.whole(tick)
		if st := srv.Stats().Replication; late.firsts != 1 || len(st) != 1 || st[0].Players != 2 || st[0].InvalidAcks != 0 {
			t.Errorf("%d firsts, %+v", late.firsts, st)
		}
	})
}

// TestStatesBandwidth changes the bandwidth of one of two players during a stream, and checks that
// both are kept.
func TestStatesBandwidth(t *testing.T) {
	measures(t)
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		a, _, joined := serveArena(t, network, 200, never, ds.WorldConfig[mover]{})
		var streams []*ds.StateStream
		for range 2 {
			conn := uplinktest.Dial(t, network, client.Config{})
			streams = append(streams, a.offer(<-joined, ds.StateConfig{Bandwidth: 64_000})) // there is more to send than fits
			_, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: newCopier(t, a).update})
			uplinktest.Must(t, err)
		}
		settle(time.Second)
		tick := uint64(1)
		used := func() (bits [2]float64) {
			for i, s := range streams {
				st := s.Stats()
				bits[i] -= 8 * float64(st.WireBytes()) / 5
			}
			a.run(tick, tick+299)
			tick += 300
			for i, s := range streams {
				st := s.Stats()
				bits[i] += 8 * float64(st.WireBytes()) / 5
			}
			return bits
		}
		for _, bandwidth := range []int{64_000, 256_000, 20_000, 100_000} {
			uplinktest.Must(t, streams[0].SetBandwidth(bandwidth, 0))
			bits := used()
			for i, want := range []float64{float64(bandwidth), 64_000} {
				if bits[i] > 1.03*want || bits[i] < .8*want {
					t.Errorf("after a change to %d, player %d uses %.0f bits a second, want %.0f", bandwidth, i, bits[i], want)
				}
			}
		}
		// From now on the bandwidth is estimated. The link is fast enough for the maximum.
		uplinktest.Must(t, streams[0].SetBandwidth(256_000, 32_000))
		if b := streams[0].Bandwidth(); b > 256_000 || b < 32_000 {
			t.Errorf("an estimate of %d", b)
		}
		used()
		if bits := used(); bits[0] < 150_000 || bits[0] > 1.03*256_000 {
			t.Errorf("an estimate up to 256000 bits a second uses %.0f", bits[0])
		}
	})
}

// label has an invalid tag, stranger's field cannot be converted to that of mover.
type (
	label struct {
		Name string `uplink:"max=16" statesync:"sleep"`
	}
	stranger struct {
		Position schema.Vec2 `uplink:"resolution=0.01,min=-1000,max=1000"`
	}
)

// TestSubscriptionsRefused checks the errors for subscriptions that do not match the world, for
// invalid priorities and inputs, and that the smallest bandwidth is kept.
func TestSubscriptionsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		a, srv, joined := serveArena(t, network, 60, 400, ds.WorldConfig[mover]{})
		conn := uplinktest.Dial(t, network, client.Config{})
		player := <-joined
		s := a.offer(player, ds.StateConfig{Bandwidth: 1000})
		if s.Ready() || !errors.Is(s.Send(), ds.ErrNotReady) || s.Bandwidth() != 1000 {
			t.Errorf("ready before the client took part, with %d", s.Bandwidth())
		}
		var differs *client.FieldError
		_, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[stranger]{})
		if !errors.As(err, &differs) || differs.Field != "Position" || !strings.Contains(differs.There, "vec3") || !strings.Contains(differs.Here, "vec2") {
			t.Errorf("another schema: %v", err)
		}
		_, err = client.SubscribeSnapshots(t.Context(), conn, "mover", client.SnapshotConfig[mover]{})
		if !errors.Is(err, client.ErrNotOffered) || !strings.Contains(err.Error(), "movers") {
			t.Errorf("another name: %v", err)
		}
		named, err := ds.NewWorld(srv.Server, "named", ds.WorldConfig[label]{})
		uplinktest.Must(t, err)
		_, wrongTag := named.OfferState(player, ds.StateConfig{})
		wantErrors(t, "replication: ", map[string]error{`"Name"`: wrongTag})
		_, wrongTag = client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[label]{})
		_, fastAcks := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{AckHz: 1001})
		_, slowAcks := client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{AckHz: -1})
		wantErrors(t, "", map[string]error{`"Name"`: wrongTag, "StateConfig.AckHz": fastAcks, "SnapshotConfig.AckHz": slowAcks})
		if st := srv.Stats().Replication[0]; st.Players != 1 || st.Ready != 0 || a.step(1) != 0 {
			t.Errorf("refused: %+v", st)
		}
		_, err = client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{})
		uplinktest.Must(t, err)
		settle(time.Second)

		// Invalid priorities, inputs of a past tick, and a bandwidth without room for any object.
		for _, p := range []float64{math.NaN(), math.Inf(1), -1} {
			wantErrors(t, "replication: world movers: ", map[string]error{"object 7: priority": s.Prioritize(7, p)})
			wantErrors(t, "replication: world movers: ", map[string]error{"object 7: priority": a.Prioritize(7, p)})
		}
		uplinktest.Must(t, s.AddInputs(5))
		if err := s.AddInputs(5); !errors.Is(err, statesync.ErrTick) {
			t.Errorf("inputs twice: %v", err)
		}
		if s.AddInputs(1<<60) == nil || s.SetBandwidth(10, 0) == nil {
			t.Error("inputs of a tick that cannot be, or 10 bits a second")
		}
		uplinktest.Must(t, a.Begin(2))
		wantErrors(t, "ds: ", map[string]error{"call Commit before": s.Send()})
		for tick := uint64(3); tick <= 1200; tick++ {
			a.put(tick)
			uplinktest.Must(t, s.Prioritize(0, 1))
			uplinktest.Must(t, s.Send())
			time.Sleep(time.Second / 60)
		}
		st := s.Stats()
		if bits := 8 * st.WireBytes() / 20; st.Messages < 5 || bits > 1100 {
			t.Errorf("%d messages of %d bits a second in all", st.Messages, bits)
		}
	})
}

// TestWorldMessages sends a message with every tenth tick of a world over a link that loses
// snapshots and repeats reliable messages late. A client that handles snapshots gets each message
// before those from its tick on, or later at once. A client that plays them back gets it with the
// first picture of its tick.
func TestWorldMessages(t *testing.T) {
	for _, plays := range []bool{false, true} {
		bubble(t, fmt.Sprintf("plays=%t", plays), func(t *testing.T) {
			network := lossy(t)
			a, _, joined := serveArena(t, network, 40, never, ds.WorldConfig[mover]{TickHz: 60})
			conn := uplinktest.Dial(t, network, client.Config{})
			stream, err := a.Offer(<-joined)
			uplinktest.Must(t, err)
			if err := stream.SendReliable(1, nil); !errors.Is(err, ds.ErrNotReady) {
				t.Error(err)
			}
			var checked, messages, late int
			var ticks []uint64
			// check checks the new messages, which came between two ticks that the client showed.
			check := func(before, shown uint64) {
				for ; checked < len(ticks); checked++ {
					if tick := ticks[checked]; tick > shown {
						t.Errorf("the message of tick %d came at tick %d", tick, shown)
					} else if tick <= before {
						late++
					}
				}
			}
			shown := uint64(0)
			cfg := client.SnapshotConfig[mover]{
				OnMessage: func(tick uint64, b []byte) {
					if messages++; tick != uint64(10*messages) || binary.LittleEndian.Uint64(b) != tick {
						t.Errorf("message %d is of tick %d: %x", messages, tick, b)
					}
					ticks = append(ticks, tick)
				},
			}
			if plays {
				cfg.Interpolate = &interpolate.Config{}
			} else {
				cfg.Handle = func(s *client.Snapshot[mover]) {
					check(shown, max(shown, s.Tick))
					shown = max(shown, s.Tick)
				}
			}
			view, err := client.SubscribeSnapshots(t.Context(), conn, "movers", cfg)
			uplinktest.Must(t, err)
			const last = 600
			var out interpolate.Sample[mover]
			for tick := uint64(1); tick <= last+60; tick++ {
				if tick <= last {
					a.put(tick)
					if tick%10 == 0 {
						uplinktest.Must(t, stream.SendReliable(tick, binary.LittleEndian.AppendUint64(nil, tick)))
					}
					_, err := a.Send()
					uplinktest.Must(t, err)
				}
				settle(time.Second / 60)
				if plays && view.Sample(time.Now(), &out) {
					now := uint64(out.Time.Seconds()*60 + 1e-6)
					check(shown, now)
					shown = now
				}
			}
			if messages != last/10 || plays && late > last/10/6 || !plays && late == 0 {
				t.Errorf("%d of %d messages came, %d of them after the snapshot of their tick", messages, last/10, late)
			}
		})
	}
}

// worldTraffic is what a client and a server send per second.
type worldTraffic struct {
	snapshots float64 // bytes
	age       float64 // mean age of their baselines, in ticks
	up        float64 // bits of the client's datagrams, with all headers
	datagrams float64 // from the client
	acks      float64
}

// playWorld calls an RPC at 60 Hz, replicates a world to the client at 60 Hz, or does both.
func playWorld(t *testing.T, objects int, loss float64, preset client.Preset, calls, world bool) (w worldTraffic) {
	t.Helper()
	const hz = 60
	const seconds = 10.0
	network := linkedBy(t, 100*ms, simnet.Config{Loss: loss, Seed: 3})
	var a *arena
	joined := make(chan *ds.Player, 1)
	cfg := ds.Config{Joined: func(p *ds.Player) { joined <- p }, Transport: ds.Transport{Suites: []transport.Suite{transport.AES128GCM, transport.AES128CTRHMAC8}}}
	srv := serve(t, network, cfg, ignores("Move"), func(s *ds.Server) error {
		a = newArena(t, s, "movers", objects, never, ds.WorldConfig[mover]{})
		return nil
	})
	conn := uplinktest.Dial(t, network, client.Config{Preset: preset})
	s := uplinktest.Bind(t, conn, "Move")
	if world {
		_, err := a.Offer(<-joined)
		uplinktest.Must(t, err)
		_, err = client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{})
		uplinktest.Must(t, err)
	}
	settle(time.Second)
	network.Watch(func(from, _ netip.AddrPort, b []byte) {
		if from.String() != uplinktest.Addr && uplinktest.Kind(b) == uplinktest.DataKind {
			w.up += 8 * float64(len(b)+endpoint.IPSize) / seconds
			w.datagrams += 1 / seconds
		}
	})
	before := srv.Stats().Replication[0].Bytes
	for tick := range uint64(seconds * hz) {
		a.step(tick + 1)
		w.age += float64(srv.Stats().Replication[0].BaselineAge) / seconds / hz
		time.Sleep(time.Second / hz / 2)
		if calls {
			send(t, s, 0, tick)
		}
		time.Sleep(time.Second / hz / 2)
	}
	settle(time.Second)
	w.snapshots = float64(srv.Stats().Replication[0].Bytes-before) / seconds
	for _, st := range conn.Stats().Replication {
		w.acks += float64(st.Acks) / seconds
	}
	return w
}

// TestAcksOfWorlds verifies that the acks of a world share the datagrams of RPCs, if that costs
// less than the snapshots grow because acks wait.
func TestAcksOfWorlds(t *testing.T) {
	measures(t)
	for _, c := range []struct {
		objects int
		loss    float64
		preset  client.Preset
		alone   float64 // maximum number of datagrams of acks alone per second
		larger  float64 // maximum ratio of the sizes of snapshots
	}{
		{40, 0, client.LowLatency, 1, 1},
		{40, 0.05, client.LowLatency, 2, 1},
		{40, 0, client.Balanced, 1, 1.05},
		{40, 0.05, client.Balanced, 3, 1.05},
		{40, 0, client.LowBandwidth, 4, 1.08},
		{40, 0.05, client.LowBandwidth, 2, 1.08},
		{300, 0, client.LowBandwidth, 20, 1.01},
	} {
		bubble(t, fmt.Sprintf("%d objects, loss %v, %s", c.objects, c.loss, c.preset.Name), func(t *testing.T) {
			calls := playWorld(t, 1, c.loss, c.preset, true, false)
			acks := playWorld(t, c.objects, c.loss, c.preset, false, true)
			both := playWorld(t, c.objects, c.loss, c.preset, true, true)
			t.Logf("calls alone %+v", calls)
			t.Logf("acks alone  %+v", acks)
			t.Logf("both        %+v", both)
			if n := both.datagrams - calls.datagrams; n > c.alone || both.up > calls.up+acks.up {
				t.Errorf("%.1f datagrams per second of acks alone, %.0f bits/s", n, both.up)
			}
			if both.snapshots > c.larger*acks.snapshots {
				t.Errorf("snapshots are %.3f times as large", both.snapshots/acks.snapshots)
			}
		})
	}
}
