package ds_test

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestBadConfig verifies that errors name the setting.
func TestBadConfig(t *testing.T) {
	for want, cfg := range map[string]ds.Config{
		"Config.Ring is 1":          {Ring: 1},
		"Config.Ring is 257":        {Ring: rpcdelta.MaxRing + 1},
		"Config.AckHz is 0.5":       {AckHz: 0.5},
		"Config.AckHz is -1":        {AckHz: -1},
		"Config.AckHz is 1001":      {AckHz: 1001},
		"Config.QueueBytes":         {QueueBytes: -1},
		"Config.RateSlack is 0.5":   {RateSlack: 0.5},
		"Config.RateSlack is NaN":   {RateSlack: math.NaN()},
		"Config.MaxRate is 1001":    {MaxRate: 1001},
		"Config.MaxBindings is 257": {MaxBindings: rpcdelta.MaxRPC + 2},
		"Config.MaxPlayers":         {MaxPlayers: -1},
		"Config.Timeout":            {Timeout: time.Millisecond},
	} {
		srv, err := ds.Listen("127.0.0.1:0", cfg)
		if err == nil {
			uplinktest.Must(t, srv.Close())
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "ds: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:port"} {
		if srv, err := ds.Listen(addr, ds.Config{}); err == nil {
			t.Errorf("listens on %q, that is %v", addr, srv.Addr())
			uplinktest.Must(t, srv.Close())
		}
	}
}

// TestNoKey verifies that a server without a key refuses addresses other than loopback.
func TestNoKey(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0"} {
		_, err := ds.Listen(addr, ds.Config{})
		if !errors.Is(err, token.ErrNoKey) || !strings.Contains(err.Error(), "Config.Key") || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	srv, err := ds.Listen("0.0.0.0:0", ds.Config{Insecure: true})
	uplinktest.Must(t, err)
	uplinktest.Must(t, srv.Close())
}

// TestBadHandle verifies the errors of registrations.
func TestBadHandle(t *testing.T) {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	uplinktest.Must(t, err)
	defer srv.Close()
	type good struct{ Buttons uint16 }
	type noResolution struct{ Speed float64 }
	type unsupported struct{ Updates func() }
	type unexported struct{ speed uint8 } //nolint:unused // the test needs it unused
	uplinktest.Must(t, ds.Handle(srv, "Taken", func(*ds.Player, ds.Frame[good]) {}))
	taken, err := schema.New("Taken", 60, []schema.Field{{Name: "F", Kind: schema.KindBool}})
	uplinktest.Must(t, err)
	for want, err := range map[string]error{
		"Taken is handled already":   ds.Handle(srv, "Taken", func(*ds.Player, ds.Frame[noField]) {}),
		"Taken is handled alread":    ds.HandleSchema(srv, taken, func(*ds.Player, ds.Frame[*schema.Frame]) {}),
		`Move: field "Speed"`:        ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[noResolution]) {}),
		`Move: field "Updates"`:      ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[unsupported]) {}),
		`Move: field "speed"`:        ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[unexported]) {}),
		"Move: string is not a stru": ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[string]) {}),
		"name":                       ds.Handle(srv, "", func(*ds.Player, ds.Frame[good]) {}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "ds: ") {
			t.Errorf("got %v, want an error that mentions %q", err, want)
		}
	}
	if n := len(srv.Stats().RPCs); n != 1 {
		t.Errorf("%d RPCs", n)
	}
}

type noField struct{ Up bool }

// TestServe ends Serve in each way.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		listen := func() (*ds.Server, chan error, context.CancelFunc) {
			srv, err := ds.Listen(uplinktest.Addr, ds.Config{Network: network})
			uplinktest.Must(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			go func() { served <- srv.Serve(ctx) }()
			settle(time.Second)
			return srv, served, cancel
		}
		srv, served, cancel := listen()
		cancel()
		uplinktest.Must(t, <-served)
		uplinktest.Must(t, errors.Join(srv.Close(), srv.Close()))

		srv, served, cancel = listen()
		if err := srv.Serve(context.Background()); err == nil {
			t.Error("it serves twice")
		}
		uplinktest.Must(t, srv.Close())
		uplinktest.Must(t, <-served)
		if err := srv.Serve(context.Background()); err == nil {
			t.Error("it serves after Close")
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

// TestBothEndsCountAlike compares the counts of both ends on a link without loss.
func TestBothEndsCountAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Seed: 40})
		srv := uplinktest.Serve(t, network, ds.Config{}, handles("Move", uplinktest.NewJournal(t, 1).Handle))
		conn := uplinktest.Dial(t, network, client.Config{})
		play(t, uplinktest.Bind(t, conn, "Move"), 1, 0, 1000, 60)
		settle(time.Second)
		uplinktest.Must(t, conn.Close())
		settle(time.Second)
		c, s := conn.Stats(), srv.Stats()
		sent, got := c.RPCs[0], s.RPCs[0]
		if sent.Messages != got.Messages || sent.Bytes != got.Bytes || sent.Frames() != 1000 {
			t.Errorf("client %+v, server %+v", sent, got)
		}
		// Until the first ack each frame may be the one that resets; the server
		// knows which did.
		if got.Reset != 1 || sent.Reset < 2 || sent.Keyframe+sent.Reset != got.Keyframe+got.Reset {
			t.Errorf("client %+v, server %+v", sent.Stats, got.Stats)
		}
		sent.Reset, sent.Keyframe = got.Reset, got.Keyframe
		if sent.Stats != got.Stats {
			t.Errorf("client %+v, server %+v", sent.Stats, got.Stats)
		}
		if 8*sent.Bytes < sent.HeaderBits+sent.PayloadBits || 8*sent.Bytes > sent.HeaderBits+sent.PayloadBits+7*sent.Messages {
			t.Errorf("%d bytes of %d and %d bits", sent.Bytes, sent.HeaderBits, sent.PayloadBits)
		}
		if c.AckBytes != s.Acks.Bytes || s.Acks.Messages == 0 {
			t.Errorf("%d bytes of acks received, %+v sent", c.AckBytes, s.Acks)
		}
		// The hello does not belong to a session. The close is sent three times, of which the
		// server counts two as of an unknown session.
		ct, st := c.Transport, s.Transport
		if ct.DatagramsSent != st.DatagramsReceived || ct.BytesSent != st.BytesReceived || ct.Lost != 0 ||
			st.DatagramsSent != ct.DatagramsReceived || st.BytesSent != ct.BytesReceived || st.Conns != 0 {
			t.Errorf("client %+v, server %+v", ct, st)
		}
		if n := st.Dropped.Total(); n != st.Dropped.UnknownSession || n > 2 {
			t.Errorf("dropped %+v", st.Dropped)
		}
		if ct.RTT < 60*ms || ct.RTT > 80*ms {
			t.Errorf("a round trip of %v", ct.RTT)
		}
	})
}

// TestPlayer verifies a player's id, address and round-trip time.
func TestPlayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Seed: 41})
		ids := map[uint64]bool{}
		addrs := map[netip.AddrPort]bool{}
		uplinktest.Serve(t, network, ds.Config{}, handles("Move", func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
			ids[p.ID()], addrs[p.Addr()] = true, true
			if rtt := p.RTT(); rtt < 60*ms || rtt > 80*ms {
				t.Errorf("a round trip of %v", rtt)
			}
			if d := time.Since(f.Received); d != 0 {
				t.Errorf("received %v ago", d)
			}
		}))
		for range 3 {
			conn := uplinktest.Dial(t, network, client.Config{})
			play(t, uplinktest.Bind(t, conn, "Move"), 1, 0, 10, 60)
		}
		settle(time.Second)
		if len(ids) != 3 || len(addrs) != 3 {
			t.Errorf("ids %v, addresses %v", ids, addrs)
		}
	})
}

// TestPlayerStats verifies that the players' counts add up to those of the server.
func TestPlayerStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Jitter: 20 * ms, Seed: 70})
		var players []*ds.Player
		srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { players = append(players, p) }}, func(s *ds.Server) error {
			if err := ds.Handle(s, "Move", uplinktest.NewJournal(t, 1).Handle); err != nil {
				return err
			}
			return ds.Validate(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) error {
				if f.Seq%50 == 7 {
					return errTenth
				}
				return nil
			})
		})
		for i := range 3 {
			play(t, uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move"), 1, 0, 300*(i+1), 60)
		}
		settle(time.Second)
		r := dialRaw(t, network)
		r.say([]byte{0, 0, 0, 0})
		settle(time.Second)
		var sum ds.PlayerStats
		for i, p := range players {
			st := p.Stats()
			if i < 3 && (st.Frames < uint64(200*(i+1)) || st.Transport.RTT < 60*ms || st.Transport.DatagramsReceived < st.Frames/2 || p.Rejected() != st.Drops[ds.Rejected]) {
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
		if sum.Missed == 0 || sum.Missed != all.RPCs[0].Missed {
			t.Errorf("%d frames of the players are missed, %d in all", sum.Missed, all.RPCs[0].Missed)
		}
		if listed := slices.Collect(srv.Players()); len(listed) != len(players) || !holds(listed, players) {
			t.Errorf("%d players are listed, %d are there", len(listed), len(players))
		}
		if sum.Frames != all.RPCs[0].Frames() || sum.Drops != all.Drops || sum.Drops[ds.UnknownRPC] != 1 || sum.Drops[ds.Late] == 0 || sum.Drops[ds.Rejected] < 20 {
			t.Errorf("%+v, but %+v", sum, all)
		}
	})
}

// holds reports whether others contains all of some.
func holds(others, some []*ds.Player) bool {
	return !slices.ContainsFunc(some, func(p *ds.Player) bool { return !slices.Contains(others, p) })
}
