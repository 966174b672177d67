package ds_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestStates sends state of worlds over links with loss, delay and reordering, within a bandwidth.
// It checks that every update equals the server's state, that inputs of every tick are received,
// and that objects at rest are in the end as at the server.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		count     int
		rtt       time.Duration
		link      simnet.Config
		cfg       ds.StateConfig
		sendHz    float64
		ackHz     float64
		fragments bool
	}{
		{count: 20, rtt: 20 * ms},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, cfg: ds.StateConfig{Bandwidth: 64_000}, ackHz: 60},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, cfg: ds.StateConfig{Bandwidth: 24_000}},
		{count: 300, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, cfg: ds.StateConfig{Bandwidth: 4_000_000, NoDelta: true}, fragments: true},
		{count: 100, rtt: 300 * ms, link: simnet.Config{Loss: 0.2, Burst: 4, Duplicate: 0.2}, ackHz: 10, sendHz: 20, fragments: true},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Rate: 20_000, Jitter: 5 * ms}, cfg: ds.StateConfig{Bandwidth: 2_000_000, MinBandwidth: 32_000, NoDelta: true}},
	} {
		name := fmt.Sprintf("%d/rtt=%v/loss=%v/bandwidth=%d/ackHz=%v/rate=%v", c.count, c.rtt, c.link.Loss, c.cfg.Bandwidth, c.ackHz, c.link.Rate)
		bubble(t, name, func(t *testing.T) {
			up, down := symmetric(c.rtt, c.link)
			up.Rate = 0
			network := uplinktest.NewNetwork(t, up, down)
			const rest, ticks = 400, 840
			a, srv, joined := serveArena(t, network, c.count, rest, ds.WorldConfig[mover]{SendHz: c.sendHz})
			got := newCopier(t, a)
			conn := uplinktest.Dial(t, network, client.Config{})
			a.offer(<-joined, c.cfg)
			v, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: got.take, AckHz: c.ackHz})
			uplinktest.Must(t, err)
			settle(time.Second)
			begin := time.Now()
			every := uint64(1)
			if c.sendHz != 0 {
				every = uint64(60 / c.sendHz)
			}
			for tick := every; tick <= ticks; tick += every {
				a.step(tick)
				time.Sleep(time.Duration(every) * time.Second / 60)
			}
			seconds := time.Since(begin).Seconds()
			settle(time.Second)
			got.whole(ticks)

			st, in := srv.Stats().Replication[0], v.Stats()
			bits := 8 * float64(st.WireBytes()) / seconds
			t.Logf("%.0f bits a second, sent %+v, got %+v", bits, st, in)
			limit := c.cfg.Bandwidth
			if limit == 0 {
				limit = 256_000 // the default
			}
			if bits > 1.01*float64(limit) {
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
			if share := 1 - float64(in.Messages)/float64(st.Messages); c.cfg.MinBandwidth != 0 && share > 0.05 {
				t.Errorf("%.3f of the messages were lost to a queue", share)
			}
			if least := 0.98 * ticks / float64(every); c.sendHz == 0 && float64(len(got.inputs)-got.missing) < least {
				t.Errorf("inputs of %d ticks came, of %d more that they are missing", len(got.inputs)-got.missing, got.missing)
			}
		})
	}
}

// TestStatesAndSnapshots sends one world to two players by different codecs. One of them then
// changes to the other codec.
func TestStatesAndSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		a, srv, joined := serveArena(t, network, 50, 1<<40, ds.WorldConfig[mover]{})
		one := uplinktest.Dial(t, network, client.Config{})
		players := []*ds.Player{<-joined}
		two := uplinktest.Dial(t, network, client.Config{})
		players = append(players, <-joined)
		a.offer(players[0], ds.StateConfig{})
		snap, err := a.Offer(players[1])
		uplinktest.Must(t, err)
		got := newCopier(t, a)
		v, err := client.SubscribeState(t.Context(), one, "movers", client.StateConfig[mover]{})
		uplinktest.Must(t, err)
		w, err := client.SubscribeSnapshots(t.Context(), two, "movers", client.SnapshotConfig[mover]{})
		uplinktest.Must(t, err)
		settle(time.Second)
		polled := 0
		for tick := range uint64(200) {
			if n := a.step(tick + 1); n != 2 {
				t.Fatalf("tick %d was sent to %d", tick+1, n)
			}
			time.Sleep(time.Second / 60)
			polled += v.Poll(got.take)
		}
		settle(time.Second)
		polled += v.Poll(got.take)
		if st := v.Stats(); st.Messages < 180 || uint64(polled) != st.Messages || w.Stats().Messages < 180 {
			t.Errorf("%d polled, %+v, snapshots %+v", polled, st, w.Stats())
		}

		// Each refuses the other codec, at both ends.
		if _, err := a.Offer(players[0]); err == nil || !strings.Contains(err.Error(), "Stop") {
			t.Errorf("offered both ways: %v", err)
		}
		uplinktest.Must(t, w.Close())
		if _, err := client.SubscribeState(t.Context(), two, "movers", client.StateConfig[mover]{}); err == nil || !strings.Contains(err.Error(), `"snapshot"`) {
			t.Errorf("taken by the other codec: %v", err)
		} else {
			t.Log(err)
		}
		snap.Stop()
		settle(time.Second)
		a.offer(players[1], ds.StateConfig{})
		late := newCopier(t, a)
		_, err = client.SubscribeState(t.Context(), two, "movers", client.StateConfig[mover]{Handle: late.take})
		uplinktest.Must(t, err)
		a.run(201, 300)
		settle(time.Second)
		if late.firsts != 1 || late.updates == 0 {
			t.Errorf("%d updates came after the change", late.updates)
		}
		// Updates that nobody polls are dropped, and their content is sent again.
		if st := v.Stats(); st.Unpolled != 0 {
			t.Errorf("%+v", st)
		}
		a.run(301, 500)
		settle(time.Second)
		if st := v.Stats(); st.Unpolled == 0 {
			t.Errorf("%+v", st)
		}
		v.Poll(got.take)
		a.rest = 520
		for tick := uint64(501); tick < 800; tick++ {
			a.step(tick)
			time.Sleep(time.Second / 60)
			v.Poll(got.take)
		}
		settle(time.Second)
		v.Poll(got.take)
		got.whole(799)
		late.whole(799)
		if st := srv.Stats().Replication; len(st) != 1 || st[0].Players != 2 || st[0].InvalidAcks != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// label has an invalid tag.
type label struct {
	Name string `uplink:"max=16" statesync:"sleep"`
}

// lonely differs from mover in that no field is tagged as its rest flag.
type lonely struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000,velocity=Velocity"`
	Rotation schema.Quat `uplink:"bits=11"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
	Lit      bool
	Resting  bool
}

// TestStatesRefused checks the errors for invalid configurations, types, priorities and inputs, and
// that the smallest bandwidth is kept.
func TestStatesRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		var a *arena
		joined := make(chan *ds.Player, 1)
		var named *ds.World[label]
		uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(srv *ds.Server) (err error) {
			a = newArena(t, srv, 60, 400, ds.WorldConfig[mover]{})
			named, err = ds.NewWorld(srv, "named", ds.WorldConfig[label]{})
			return err
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		player := <-joined
		if _, err := named.OfferState(player, ds.StateConfig{}); err == nil || !strings.Contains(err.Error(), `"Name"`) {
			t.Errorf("an unknown tag: %v", err)
		}
		for want, cfg := range map[string]ds.StateConfig{
			"Bandwidth is 999":       {Bandwidth: 999},
			"Bandwidth is -1":        {Bandwidth: -1},
			"MinBandwidth is 999":    {MinBandwidth: 999},
			"MinBandwidth is 256001": {MinBandwidth: 256_001},
			"InputTicks is 33":       {InputTicks: 33},
		} {
			if _, err := a.OfferState(player, cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %s: %v", want, err)
			}
		}
		s, err := a.OfferState(player, ds.StateConfig{Bandwidth: 1000})
		uplinktest.Must(t, err)
		if s.Ready() || !errors.Is(s.Send(), ds.ErrNotReady) || s.Bandwidth() != 1000 {
			t.Errorf("ready before the client took part, with %d", s.Bandwidth())
		}
		var differs *client.WorldError
		_, err = client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[lonely]{})
		if !errors.As(err, &differs) || differs.Field != 4 || differs.Here != "Resting bool" || differs.There != "Resting bool rest" {
			t.Errorf("another field rests: %v", err)
		}
		if _, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[label]{}); err == nil || !strings.Contains(err.Error(), `"Name"`) {
			t.Errorf("an unknown tag: %v", err)
		}
		if _, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{AckHz: 1001}); err == nil || !strings.Contains(err.Error(), "StateConfig.AckHz") {
			t.Errorf("acks: %v", err)
		}
		_, err = client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{})
		uplinktest.Must(t, err)
		settle(time.Second)

		// Invalid priorities, inputs of a past tick, and a bandwidth without room for any object.
		var priority *statesync.PriorityError
		for _, p := range []float64{math.NaN(), math.Inf(1), -1} {
			if err := s.Prioritize(7, p); !errors.As(err, &priority) || priority.Object != 7 {
				t.Errorf("priority %v: %v", p, err)
			}
		}
		uplinktest.Must(t, s.AddInputs(5))
		if err := s.AddInputs(5); !errors.Is(err, statesync.ErrTick) {
			t.Errorf("inputs twice: %v", err)
		}
		if err := s.AddInputs(1 << 60); err == nil {
			t.Error("inputs of a tick that cannot be")
		}
		if err := s.SetBandwidth(10, 0); err == nil {
			t.Error("10 bits a second")
		}
		for tick := uint64(1); tick <= 1200; tick++ {
			a.put(tick)
			uplinktest.Must(t, s.Prioritize(0, 1))
			uplinktest.Must(t, s.Send())
			time.Sleep(time.Second / 60)
		}
		st := s.Stats()
		if bits := 8 * st.WireBytes() / 20; st.Messages < 5 || bits > 1100 {
			t.Errorf("%d messages of %d bits a second in all", st.Messages, bits)
		}
		s.Stop()
		settle(time.Second)
		if s.Ready() || s.Send() == nil {
			t.Error("sent after Stop")
		}
	})
}

// TestStatesBandwidth changes the bandwidth of one of two players during a stream, and checks that
// both are kept.
func TestStatesBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		a, _, joined := serveArena(t, network, 200, 1<<40, ds.WorldConfig[mover]{})
		var streams []*ds.StateStream[mover]
		for range 2 {
			conn := uplinktest.Dial(t, network, client.Config{})
			p := <-joined
			a.offer(p, ds.StateConfig{Bandwidth: 64_000, NoDelta: true}) // there is more to send than fits
			a.mu.Lock()
			streams = append(streams, a.streams[p])
			a.mu.Unlock()
			got := newCopier(t, a)
			_, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{Handle: got.take})
			uplinktest.Must(t, err)
		}
		settle(time.Second)
		tick := uint64(1)
		taken := func() (bits [2]float64) {
			var before [2]uint64
			for i, s := range streams {
				st := s.Stats()
				before[i] = st.WireBytes()
			}
			a.run(tick, tick+299)
			tick += 300
			for i, s := range streams {
				st := s.Stats()
				bits[i] = 8 * float64(st.WireBytes()-before[i]) / 5
			}
			return bits
		}
		for _, bandwidth := range []int{64_000, 256_000, 20_000, 100_000} {
			uplinktest.Must(t, streams[0].SetBandwidth(bandwidth, 0))
			bits := taken()
			for i, want := range []float64{float64(bandwidth), 64_000} {
				if bits[i] > 1.03*want || bits[i] < .8*want {
					t.Errorf("after a change to %d, player %d takes %.0f bits a second, want %.0f", bandwidth, i, bits[i], want)
				}
			}
		}
		// From now on the bandwidth is estimated. The link is fast enough for the maximum.
		uplinktest.Must(t, streams[0].SetBandwidth(256_000, 32_000))
		if b := streams[0].Bandwidth(); b > 256_000 || b < 32_000 {
			t.Errorf("an estimate of %d", b)
		}
		taken()
		if bits := taken(); bits[0] < 150_000 || bits[0] > 1.03*256_000 {
			t.Errorf("an estimate up to 256000 bits a second takes %.0f", bits[0])
		}
	})
}
