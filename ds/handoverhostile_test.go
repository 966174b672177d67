package ds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// forger is a client that sends any data as the payload of a handover.
type forger struct {
	raw
	payload []byte // nil: none
	result  error  // of its stream
	mux     *streams.Mux
	double  *doubleClient // that it belongs to, or nil
}

func (f *forger) Opened(c *endpoint.Conn) {
	f.mux = streams.New(forgerOwner{conn: c, double: f.double})
	c.SetBulk(1<<20, f.mux.Next, func(b []byte, at time.Time) { _ = f.mux.Deliver(at, b) })
	if f.payload != nil {
		_, err := f.mux.SendReserved(time.Now(), message.HandoverStream, f.payload, func(err error) { f.result = err })
		uplinktest.Must(f.t, err)
	}
}

func (f *forger) Message(_ *endpoint.Conn, b []byte, _ time.Time) {
	if f.double != nil {
		f.double.message(b)
	}
}

// forgerOwner is the owner of a forger's streams.
type forgerOwner struct {
	conn   *endpoint.Conn
	double *doubleClient
}

func (o forgerOwner) Wake()                     { o.conn.WakeBulk() }
func (forgerOwner) Accept(*streams.Reader) bool { return false }
func (forgerOwner) Count(int, int)              {}

func (o forgerOwner) AcceptReserved(r *streams.Reader) func([]byte, error) {
	if o.double == nil {
		return nil
	}
	return o.double.receive(r)
}

// TestHandoverHostile uses tokens of handovers without their payload or the release, with others,
// and twice. Nobody joins with another payload than the token promises, or before the release, and
// no session stays without it.
func TestHandoverHostile(t *testing.T) {
	secret := message.NewSecret()
	promise := func(c *token.Claims) { c.Handover = secret.Hash([]byte("state")) }
	bare := func(c *token.Claims) { c.Handover = secret.Hash(nil) }
	none := func(*token.Claims) {}
	release := message.AppendRelease(nil, secret)
	for name, c := range map[string]struct {
		claims  func(*token.Claims)
		payload []byte
		release []byte
		uses    int
		dial    error // of the last use
		end     error // of the first one
		joined  int
		result  error // of the stream
	}{
		"as promised":              {promise, []byte("state"), release, 1, nil, nil, 1, nil},
		"as promised, without one": {bare, nil, release, 1, nil, nil, 1, nil},
		"no release":               {promise, []byte("state"), nil, 1, nil, transport.ErrProtocol, 0, nil},
		"another release":          {promise, []byte("state"), message.AppendRelease(nil, message.NewSecret()), 1, nil, transport.ErrProtocol, 0, nil},
		"the hash as the release":  {bare, nil, message.AppendRelease(nil, secret.Hash(nil)), 1, nil, transport.ErrProtocol, 0, nil},
		"a short release":          {promise, []byte("state"), release[:20], 1, nil, transport.ErrProtocol, 0, nil},
		"a switch":                 {promise, []byte("state"), message.AppendSwitch(nil), 1, nil, transport.ErrProtocol, 0, nil},
		"no payload":               {promise, nil, release, 1, nil, transport.ErrProtocol, 0, nil},
		"nothing":                  {promise, nil, nil, 1, nil, transport.ErrProtocol, 0, nil},
		"replayed":                 {promise, nil, nil, 2, token.ErrUsed, transport.ErrProtocol, 0, nil},
		"another one":              {promise, []byte("stats"), release, 1, nil, transport.ErrProtocol, 0, nil},
		"a shorter one":            {promise, []byte("stat"), release, 1, nil, transport.ErrProtocol, 0, nil},
		"an empty one":             {promise, []byte{}, release, 1, nil, transport.ErrProtocol, 0, nil},
		"a long one":               {promise, make([]byte, ds.MaxHandover+1), release, 1, nil, transport.ErrProtocol, 0, nil},
		"not promised":             {none, []byte("state"), nil, 1, nil, nil, 1, transport.ErrUnhandled},
		"released, not promised":   {none, nil, release, 1, nil, transport.ErrProtocol, 1, nil},
	} {
		bubble(t, name, func(t *testing.T) {
			f := newServerGroup(t, linkedBy(t, 20*ms, simnet.Config{}), 2)
			cfg := endpoint.Config{Network: f.network, Token: f.token(7, c.claims)}
			var uses []*forger
			var err error
			for range c.uses {
				r := &forger{raw: raw{t: t}, payload: c.payload}
				if r.Conn, err = endpoint.Dial(t.Context(), f.members[0].addr, cfg, r); err == nil {
					t.Cleanup(func() { uplinktest.Must(t, r.Close()) })
					uses = append(uses, r)
				}
			}
			if !errors.Is(err, c.dial) {
				t.Errorf("dial: %v, want %v", err, c.dial)
			}
			settle(time.Second)
			if c.release != nil {
				uplinktest.Must(t, uses[0].SendReliable(c.release))
			}
			settle(45 * time.Second)
			if len(uses) > 0 && (!errors.Is(uses[0].closed, c.end) || !errors.Is(uses[0].result, c.result)) {
				t.Errorf("the session ended with %v, want %v; the stream with %v, want %v", uses[0].closed, c.end, uses[0].result, c.result)
			}
			if n := len(f.ids()); n != c.joined {
				t.Errorf("%d joined, want %d", n, c.joined)
			}
			if p := f.player(7); p != nil {
				want := ""
				if c.result == nil {
					want = string(c.payload)
				}
				if got := string(p.HandoverPayload()); got != want {
					t.Errorf("the payload is %q, want %q", got, want)
				}
			}
		})
	}
}

// TestStandby binds an RPC at a server that another one has not released the player to, and sends a
// frame and messages. They are delivered after Joined, in order, or never, and their memory is
// bounded.
func TestStandby(t *testing.T) {
	secret := message.NewSecret()
	steps, err := schema.Compile[numbered]("Step", 0)
	uplinktest.Must(t, err)
	for name, c := range map[string]struct {
		size     int // of 90 messages
		released bool
		end      error
		reliable int // delivered
	}{
		"released":     {1000, true, nil, 90},
		"not released": {1000, false, transport.ErrProtocol, 0},
		"too much":     {ds.MaxMessage, true, transport.ErrLimit, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			var order []string
			connected, streamed := 0, 0
			f := newServerGroup(t, linkedBy(t, 20*ms, simnet.Config{}), 1, func(cfg *ds.Config) {
				cfg.Hooks.Connected = func(p *ds.Player) {
					connected++
					if p.HandoverPayload() != nil {
						t.Error("the payload is there before the release")
					}
				}
				cfg.Joined = func(p *ds.Player) { order = append(order, "joined") }
				cfg.Left = func(*ds.Player, error) { order = append(order, "left") }
				cfg.OnMessage = func(_ *ds.Player, b []byte) { order = append(order, "reliable") }
				cfg.Hooks.OnUnreliable = func(_ *ds.Player, b []byte) { order = append(order, "unreliable") }
				cfg.Hooks.OnRequest = func(*ds.Request) { order = append(order, "request") }
				cfg.Hooks.OnStream = func(*ds.Player, transport.StreamReader) { streamed++ }
			})
			r := &forger{raw: raw{t: t, wait: 100 * ms}}
			var err error
			r.payload = []byte{}
			claims := func(c *token.Claims) { c.Handover = secret.Hash(nil) }
			r.Conn, err = endpoint.Dial(t.Context(), f.members[0].addr, endpoint.Config{Network: f.network, Token: f.token(7, claims)}, r)
			uplinktest.Must(t, err)
			defer r.Close()
			settle(time.Second)
			r.mustBind(request(0, steps.Schema(), false))
			enc, err := rpcdelta.NewEncoder(steps.Schema(), rpcdelta.EncoderConfig{})
			uplinktest.Must(t, err)
			payload, _, err := enc.AppendFrame(nil, steps.Schema().NewFrame())
			uplinktest.Must(t, err)
			r.say(payload)
			_, err = r.mux.Open(t.Context(), time.Now(), "level")
			uplinktest.Must(t, err)
			for range 90 {
				_ = r.SendReliable(message.AppendMessage(nil, make([]byte, c.size)))
				_ = r.Send(message.AppendMessage(nil, make([]byte, min(c.size, 1000))))
				settle(50 * ms)
			}
			_ = r.SendReliable(message.AppendRequest(nil, message.Ask, 1, nil))
			settle(time.Second)
			players := slices.Collect(f.members[0].Players())
			if n := f.members[0].Stats().RPCs[1].Frames(); n != 0 {
				t.Errorf("%d frames before the release", n)
			}
			if len(order) > 0 || streamed > 0 || connected != 1 || len(players) > 0 {
				t.Errorf("before the release: %v, %d streams, connected %d times, %d players", order, streamed, connected, len(players))
			}
			if c.released {
				_ = r.SendReliable(message.AppendRelease(nil, secret))
			}
			settle(time.Second)
			counts := map[string]int{}
			for _, o := range order {
				counts[o]++
			}
			if n := f.members[0].Stats().RPCs[1].Frames(); (n == 1) != (c.reliable > 0) {
				t.Errorf("%d frames after the release", n)
			}
			if counts["reliable"] != c.reliable || c.reliable > 0 && (order[0] != "joined" || counts["unreliable"] != 90 || counts["request"] != 1 || streamed != 1) {
				t.Errorf("after the release: %v, %d streams", counts, streamed)
			}
			settle(45 * time.Second)
			if !errors.Is(r.closed, c.end) || c.reliable == 0 && (len(order) > 0 || streamed > 0) {
				t.Errorf("%v, want %v; %v", r.closed, c.end, counts)
			}
		})
	}
}

// doubleClient is a hostile client that is handed over and wants to play on both servers.
type doubleClient struct {
	t       *testing.T
	network transport.Network
	stays   bool // it tells the first server that it stays, once the second has the payload
	former  *forger
	next    *forger

	notice  message.HandoverNotice
	payload []byte
	reader  *streams.Reader
	release []byte
}

// receive receives the payload at the first server.
func (d *doubleClient) receive(r *streams.Reader) func([]byte, error) {
	return func(b []byte, err error) {
		uplinktest.Must(d.t, err)
		d.payload, d.reader = b, r
	}
}

// message receives what the first server sends reliably.
func (d *doubleClient) message(b []byte) {
	switch kind, body, err := message.Split(b); {
	case err != nil || kind != message.Handover:
	case message.IsRelease(body):
		d.release = append([]byte{}, b...)
	default:
		d.notice, err = message.ParseHandover(body)
		uplinktest.Must(d.t, err)
	}
}

// follow connects to the second server, and sends the payload.
func (d *doubleClient) follow() {
	d.next = &forger{raw: raw{t: d.t}, payload: d.payload}
	if len(d.payload) == 0 {
		d.next.payload = []byte{}
	}
	var err error
	d.next.Conn, err = endpoint.Dial(d.t.Context(), d.notice.Servers[0].String(), endpoint.Config{Network: d.network, Token: d.notice.Token}, d.next)
	uplinktest.Must(d.t, err)
	settle(time.Second)
	if d.stays {
		d.reader.Finish(false)
	}
}

// TestHandoverDouble hands a client over that wants to play on both servers: it does not switch, or
// stays when the other server has the payload, or switches and plays on, in a fleet
// and without one. The payload reaches the game at most once, nothing is delivered at two servers,
// and 45 s later there is one session at most. Config.Hooks.HandedOver is called once, and another
// handover can complete if the first one has failed.
func TestHandoverDouble(t *testing.T) {
	for _, how := range []string{"never switches", "stays", "switches, and plays on", "switches, and does not arrive"} {
		for _, inFleet := range []bool{false, true} {
			name := how
			if inFleet {
				name += " in a fleet"
			}
			bubble(t, name, func(t *testing.T) {
				store := fleet.NewMemory()
				var got [2]int
				outcomes := 0
				f := newServerGroup(t, linkedBy(t, 20*ms, simnet.Config{}), 0)
				for i := range 2 {
					f.add(fmt.Sprint("127.0.0.1:", 7777+i), func(cfg *ds.Config) {
						cfg.OnMessage = func(*ds.Player, []byte) { got[i]++ }
						outcome := cfg.Hooks.HandedOver
						cfg.Hooks.HandedOver = func(p *ds.Player, err error) {
							outcomes++
							outcome(p, err)
						}
						if inFleet {
							cfg.Fleet = &fleet.Config{Store: store, Name: fmt.Sprint("s", i)}
						}
					})
				}
				d := &doubleClient{t: t, network: f.network, stays: how == "stays"}
				d.former = &forger{raw: raw{t: t}, double: d, payload: nil}
				var err error
				d.former.Conn, err = endpoint.Dial(t.Context(), f.members[0].addr, endpoint.Config{Network: f.network, Token: f.token(7)}, d.former)
				uplinktest.Must(t, err)
				defer d.former.Close()
				settle(time.Second)
				p := f.player(7)
				uplinktest.Must(t, p.Handover(f.target(1), ds.HandoverConfig{Payload: []byte("gold=100")}))
				settle(time.Second)
				d.follow()
				defer d.next.Close()
				switches := strings.HasPrefix(how, "switches")
				if switches {
					uplinktest.Must(t, d.former.SendReliable(message.AppendSwitch(nil)))
					settle(time.Second)
				}
				if how == "switches, and plays on" {
					uplinktest.Must(t, d.next.SendReliable(d.release))
					settle(time.Second)
				}
				both := 0
				for range 45 * 10 {
					before := got
					_ = d.former.SendReliable(message.AppendMessage(nil, []byte("spend gold")))
					_ = d.next.SendReliable(message.AppendMessage(nil, []byte("spend gold")))
					settle(100 * ms)
					if got[0] > before[0] && got[1] > before[1] {
						both++
					}
				}
				f.mu.Lock()
				visits, outcome := f.visits[7], f.outcomes[p]
				f.mu.Unlock()
				joins := map[string]int{"switches, and plays on": 2}[how]
				if joins == 0 {
					joins = 1
				}
				if both > 0 || len(visits) != joins || outcomes != 1 {
					t.Errorf("%d times both deliver, %d joined, %d outcomes", both, len(visits), outcomes)
				}
				open := [2]int{f.members[0].Stats().Transport.Open, f.members[1].Stats().Transport.Open}
				want := [2]int{1, 0}
				if switches {
					want = [2]int{0, joins - 1}
				}
				if open != want || (got[0] > 100) == switches || (got[1] > 100) != (joins == 2) {
					t.Errorf("sessions %v, want %v, messages %v", open, want, got)
				}
				switch {
				case switches:
					uplinktest.Must(t, outcome)
					return
				case !errors.Is(outcome, transport.ErrHandover) || how == "never switches" != errors.Is(outcome, transport.ErrTimeout):
					t.Errorf("outcome %v", outcome)
				}
				uplinktest.Must(t, p.Handover(f.target(1), ds.HandoverConfig{}))
				settle(time.Second)
				_ = d.next.Close()
				d.stays = false
				d.follow()
				defer d.next.Close()
				uplinktest.Must(t, d.former.SendReliable(message.AppendSwitch(nil)))
				settle(time.Second)
				uplinktest.Must(t, d.next.SendReliable(d.release))
				settle(time.Second)
				f.mu.Lock()
				defer f.mu.Unlock()
				if v := f.visits[7]; f.outcomes[p] != nil || outcomes != 2 || len(v) != 2 || v[1].at != f.members[1] {
					t.Errorf("another handover: %v, %d outcomes, %d joined", f.outcomes[p], outcomes, len(v))
				}
			})
		}
	}
}

// TestReleased lets a client that has switched send everything to the former server that only
// players may. Nothing of it reaches the game, and reliable messages end the session.
func TestReleased(t *testing.T) {
	for name, c := range map[string]struct {
		send func(f *forger) error
		end  error
	}{
		"message":            {func(f *forger) error { return f.SendReliable(message.AppendMessage(nil, []byte("buy"))) }, transport.ErrProtocol},
		"unreliable message": {func(f *forger) error { return f.Send(message.AppendMessage(nil, []byte("buy"))) }, nil},
		"request":            {func(f *forger) error { return f.SendReliable(message.AppendRequest(nil, message.Ask, 1, nil)) }, transport.ErrProtocol},
		"cancel":             {func(f *forger) error { return f.SendReliable(message.AppendRequest(nil, message.Cancel, 1, nil)) }, nil},
		"another switch":     {func(f *forger) error { return f.SendReliable(message.AppendSwitch(nil)) }, transport.ErrProtocol},
		"stream": {func(f *forger) error {
			_, err := f.mux.Open(f.t.Context(), time.Now(), "level")
			return err
		}, nil},
	} {
		bubble(t, name, func(t *testing.T) {
			delivered := 0
			f := newServerGroup(t, linkedBy(t, 20*ms, simnet.Config{}), 2, func(cfg *ds.Config) {
				cfg.OnMessage = func(*ds.Player, []byte) { delivered++ }
				cfg.Hooks.OnUnreliable = func(*ds.Player, []byte) { delivered++ }
				cfg.Hooks.OnRequest = func(*ds.Request) { delivered++ }
				cfg.Hooks.OnStream = func(*ds.Player, transport.StreamReader) { delivered++ }
			})
			d := &doubleClient{t: t, network: f.network}
			d.former = &forger{raw: raw{t: t}, double: d}
			var err error
			d.former.Conn, err = endpoint.Dial(t.Context(), f.members[0].addr, endpoint.Config{Network: f.network, Token: f.token(7)}, d.former)
			uplinktest.Must(t, err)
			defer d.former.Close()
			settle(time.Second)
			p := f.player(7)
			uplinktest.Must(t, p.Handover(f.target(1), ds.HandoverConfig{}))
			settle(time.Second)
			uplinktest.Must(t, d.former.SendReliable(message.AppendSwitch(nil)))
			settle(time.Second)
			f.mu.Lock()
			_, called := f.outcomes[p]
			f.mu.Unlock()
			if !called || d.release == nil {
				t.Fatalf("released: %v, %x", called, d.release)
			}
			uplinktest.Must(t, c.send(d.former))
			settle(time.Second)
			if delivered > 0 || !errors.Is(d.former.closed, c.end) || c.end == nil && d.former.closed != nil {
				t.Errorf("%d delivered, the session ended with %v, want %v", delivered, d.former.closed, c.end)
			}
		})
	}
}

// TestDrainDouble drains a server whose player does not follow handovers: it ends within its
// context, and without a deadline of that when the handover has failed.
func TestDrainDouble(t *testing.T) {
	for _, limit := range []time.Duration{8 * time.Second, time.Hour} {
		bubble(t, limit.String(), func(t *testing.T) {
			f := newServerGroup(t, linkedBy(t, 20*ms, simnet.Config{}), 2)
			d := &doubleClient{t: t, network: f.network}
			d.former = &forger{raw: raw{t: t}, double: d}
			var err error
			d.former.Conn, err = endpoint.Dial(t.Context(), f.members[0].addr, endpoint.Config{Network: f.network, Token: f.token(7)}, d.former)
			uplinktest.Must(t, err)
			defer d.former.Close()
			settle(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			err = f.members[0].Drain(ctx, func(*ds.Player) (ds.Target, ds.HandoverConfig, error) { return f.target(1), ds.HandoverConfig{}, nil })
			if d := time.Since(start); d > min(limit, 31*time.Second)+time.Second || (err != nil) != (limit < time.Minute) {
				t.Errorf("after %v: %v", d, err)
			}
		})
	}
}
