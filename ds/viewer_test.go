package ds_test

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rogue"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/rewind"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// slower is the network of a cheat, who sends datagrams of some kinds later than it could, or not
// at all.
type slower struct {
	*uplinktest.Network
	heartbeats, data atomic.Int64 // delay, below 0: not at all
}

const heartbeatKind = 2

func (s *slower) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := s.Network.ListenPacket(addr)
	return &slowSocket{pc, s}, err
}

type slowSocket struct {
	transport.PacketConn
	of *slower
}

func (s *slowSocket) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	delay := time.Duration(0)
	switch uplinktest.Kind(b) {
	case heartbeatKind:
		delay = time.Duration(s.of.heartbeats.Load())
	case uplinktest.DataKind:
		delay = time.Duration(s.of.data.Load())
	}
	switch {
	case delay < 0:
		return len(b), nil
	case delay == 0:
		return s.PacketConn.WriteTo(b, to)
	}
	b = bytes.Clone(b)
	time.AfterFunc(delay, func() { _, _ = s.PacketConn.WriteTo(b, to) })
	return len(b), nil
}

// judged is the history of a server, and how far it looks back for a player's oldest claim.
type judged struct {
	*rewind.History[positionObject]
	at [2]time.Duration // the age of what is judged: the oldest, and the newest
}

type positionObject struct {
	Position schema.Vec3 `interpolate:"position"`
}

const viewDelay = 100 * ms

func (j *judged) tick(t *testing.T, tick uint64, viewer func(now time.Duration) rewind.Viewer) {
	t.Helper()
	now := time.Duration(tick) * time.Second / 60
	uplinktest.Must(t, j.Add(now, []uint32{1}, make([]positionObject, 1)))
	v := viewer(now)
	v.Delay = viewDelay
	oldest, _ := j.Seen(-time.Hour, now, v)
	newest, _ := j.Seen(now+time.Hour, now, v)
	j.at = [2]time.Duration{max(j.at[0], now-oldest), min(j.at[1], now-newest)}
}

func newJudged(t *testing.T) *judged {
	adapter, err := interpolate.Tagged[positionObject]()
	uplinktest.Must(t, err)
	h, err := rewind.New(adapter, rewind.Config{TickHz: 60})
	uplinktest.Must(t, err)
	return &judged{h, [2]time.Duration{0, time.Hour}}
}

// TestRewind measures how old what a player claims to have seen may be. A client that lies about it
// gains at most the tolerance of 50 ms, whichever datagrams it delays or withholds: acks, or
// heartbeats. One that delays both for long has a longer path, up to rewind.Config.Window. Nobody
// sees a tick before it is sent.
func TestRewind(t *testing.T) {
	const (
		rtt       = 60 * ms
		honest    = rtt + viewDelay
		tolerance = 50 * ms
		steps     = 34 * ms // an ack and a tick are up to 1/60 s old
		withheld  = -1
	)
	for name, c := range map[string]struct {
		heartbeats, data time.Duration
		most             time.Duration
	}{
		"an honest client":         {0, 0, honest + tolerance},
		"late heartbeats":          {800 * ms, 0, honest + tolerance + steps},
		"late acks":                {0, 800 * ms, honest + tolerance},
		"no acks":                  {0, withheld, honest + tolerance},
		"no heartbeats":            {withheld, 0, honest + tolerance},
		"no acks and heartbeats":   {withheld, withheld, honest + tolerance},
		"late heartbeats, no acks": {300 * ms, withheld, honest + tolerance + 300*ms},
		"all late":                 {300 * ms, 300 * ms, honest + tolerance + 300*ms + steps},
		"all very late":            {3 * time.Second, 3 * time.Second, time.Second},
	} {
		for _, state := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network := &slower{Network: linkedBy(t, rtt, simnet.Config{})}
					joined := make(chan *ds.Player, 1)
					var a *arena
					serve(t, network.Network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, ignores("Move"), func(srv *ds.Server) error {
						a = newArena(t, srv, "movers", 10, never, ds.WorldConfig[mover]{Spread: -1})
						return nil
					})
					conn := uplinktest.Dial(t, network, client.Config{})
					p := <-joined
					moves := uplinktest.Bind(t, conn, "Move", client.BindConfig{RateHz: 60})
					var viewer func(time.Duration) rewind.Viewer
					poll := func() {}
					if state {
						viewer = a.offer(p, ds.StateConfig{}).Viewer
						view, err := client.SubscribeState(t.Context(), conn, "movers", client.StateConfig[mover]{AckHz: 60})
						uplinktest.Must(t, err)
						poll = func() { view.Poll(func(*client.StateUpdate[mover]) {}) }
					} else {
						s, err := a.Offer(p)
						uplinktest.Must(t, err)
						viewer = s.Viewer
						_, err = client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{AckHz: 60})
						uplinktest.Must(t, err)
					}
					settle(time.Second)
					j := newJudged(t)
					tick := uint64(0)
					play := func(seconds int) {
						j.at = [2]time.Duration{0, time.Hour}
						for range 60 * seconds {
							tick++
							_, _ = moves.Send(&uplinktest.Move{})
							a.run(tick, tick)
							poll()
							j.tick(t, tick, viewer)
						}
					}
					play(10)
					if v := viewer(time.Duration(tick) * time.Second / 60); v.RTT != rtt || v.MinRTT != rtt || v.AckAge < rtt-steps/2 || v.AckAge > rtt+steps || v.SentAge > steps {
						t.Errorf("state %v: an honest client has %+v", state, v)
					}
					network.heartbeats.Store(int64(c.heartbeats))
					network.data.Store(int64(c.data))
					play(45)
					if j.at[0] > c.most || j.at[0] < honest || j.at[1] < 0 {
						t.Errorf("state %v: judged at %v to %v ago, want at most %v", state, j.at[1], j.at[0], c.most)
					}
					t.Logf("state %v: at most %v ago", state, j.at[0])
				})
			})
		}
	}
}

// TestForgedHeartbeats sends bursts of heartbeats with echoes of any number, and answers requests
// of the server again and again. They do not move the round-trip time.
func TestForgedHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rtt = 60 * ms
		network := linkedBy(t, rtt, simnet.Config{})
		joined := make(chan *ds.Player, 1)
		key, err := token.NewKey()
		uplinktest.Must(t, err)
		serve(t, network, ds.Config{Key: key, Joined: func(p *ds.Player) { joined <- p }}, func(*ds.Server) error { return nil })
		tok, err := token.Issue(key.Issuer(), token.Claims{ClientID: 1, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort(uplinktest.Addr)}})
		uplinktest.Must(t, err)
		c, err := rogue.Dial(t.Context(), uplinktest.Addr, rogue.Config{Token: tok, Network: network})
		uplinktest.Must(t, err)
		defer c.Close()
		p := <-joined
		time.Sleep(10 * time.Second)
		for i := range uint32(5000) {
			uplinktest.Must(t, c.Heartbeat(i+1, i*858993))
			time.Sleep(ms)
		}
		time.Sleep(time.Second)
		if st := p.Stats().Transport; p.RTT() != rtt || st.MinRTT != rtt || st.LastRTT != rtt {
			t.Errorf("RTT %v, minimum %v, last %v, want %v", p.RTT(), st.MinRTT, st.LastRTT, rtt)
		}
	})
}
