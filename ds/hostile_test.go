package ds_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// raw is a client that says what it likes within a valid session.
type raw struct {
	*transport.Conn
	t       *testing.T
	wait    time.Duration // until an answer is there
	answers []control.BindAnswer
	acks    []rpcdelta.Ack
}

func dialRaw(t *testing.T, n transport.Network) *raw {
	t.Helper()
	return dialRawAt(t, uplinktest.Addr, transport.Config{Network: n}, time.Millisecond)
}

// dialRawAt is dialRaw to an address, over links of a round trip below wait.
func dialRawAt(t *testing.T, addr string, cfg transport.Config, wait time.Duration) *raw {
	t.Helper()
	r := &raw{t: t, wait: wait}
	conn, err := transport.Dial(t.Context(), addr, cfg, r)
	uplinktest.Must(t, err)
	r.Conn = conn
	t.Cleanup(func() { uplinktest.Must(t, conn.Close()) })
	return r
}

func (r *raw) Opened(*transport.Conn)                     {}
func (r *raw) Closed(*transport.Conn, error)              {}
func (r *raw) Message(*transport.Conn, []byte, time.Time) {}
func (r *raw) Tick(time.Time)                             {}

func (r *raw) Datagram(_ *transport.Conn, b []byte, _ time.Time) {
	kind, body, err := control.Split(b)
	switch {
	case err != nil || kind == control.Frame || kind == control.Bind:
		r.t.Errorf("the server sent %x: %v", b, err)
	case kind == control.Bound:
		a, err := control.ParseBindAnswer(body)
		if err != nil {
			r.t.Error(err)
		}
		r.answers = append(r.answers, a)
	case kind == control.Acks:
		for len(body) > 0 {
			a, rest, err := rpcdelta.ParseAck(body)
			if err != nil {
				r.t.Error(err)
				return
			}
			r.acks, body = append(r.acks, a), rest
		}
	}
}

// say sends a message and lets it arrive.
func (r *raw) say(b []byte) {
	r.t.Helper()
	uplinktest.Must(r.t, r.Send(b))
	settle(r.wait)
}

// request is a correct request to bind an RPC.
func request(number int, s *schema.Schema, reliable bool) control.BindRequest {
	return control.BindRequest{
		RPC: msgpack.Byte(number), Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: control.FieldHashes(s),
		RateHz: 60, Ring: 64, Codec: rpcdelta.DefaultCodec.String(), Reliable: reliable,
	}
}

// bind asks and gives the answer.
func (r *raw) bind(req control.BindRequest) control.BindAnswer {
	r.t.Helper()
	b, err := req.Append(nil)
	uplinktest.Must(r.t, err)
	before := len(r.answers)
	r.say(b)
	if len(r.answers) != before+1 {
		r.t.Fatalf("%d answers", len(r.answers)-before)
	}
	return r.answers[before]
}

func buttonsSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.New("Buttons", 60, []schema.Field{{Name: "Buttons", Kind: schema.KindBits, Width: 16}})
	uplinktest.Must(t, err)
	return s
}

// besides serves the RPCs Move and Buttons while an honest player, who must not
// suffer, calls Move; attack does what it likes meanwhile.
func besides(t *testing.T, cfg ds.Config, attack func(*testing.T, *uplinktest.Server, *raw, *schema.Schema)) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
		journal, buttons := uplinktest.NewJournal(t, 1), buttonsSchema(t)
		srv := uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
			if err := ds.Handle(s, "Move", journal.Handle); err != nil {
				return err
			}
			return ds.HandleSchema(s, buttons, func(*ds.Player, ds.Frame[*schema.Frame]) {})
		})
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		done, finished := make(chan struct{}), make(chan struct{})
		sent := uint64(0)
		go func() {
			defer close(finished)
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Second / 60):
				}
				m := uplinktest.MoveAt(1, sent)
				if err := move.Send(&m); err != nil {
					t.Error(err)
				}
				sent++
			}
		}()
		stop := sync.OnceFunc(func() { close(done); <-finished })
		defer stop()
		attack(t, srv, dialRaw(t, network), buttons)
		settle(time.Second)
		stop()
		settle(time.Second)
		if l := journal.Only(); l.Frames() != sent || l.Missed != 0 {
			t.Errorf("%d of the honest player's %d frames came", l.Frames(), sent)
		}
		if st := move.Stats(); sent > 100 && st.Delta < sent*9/10 {
			t.Errorf("%d of the honest player's %d frames are deltas", st.Delta, sent)
		}
	})
}

// dropped gives the counts that belong to no RPC.
func dropped(srv *uplinktest.Server) (malformed, unknown uint64) {
	st := srv.Stats()
	return st.Drops[ds.Malformed], st.Drops[ds.UnknownRPC]
}

func TestRandomBytes(t *testing.T) {
	besides(t, ds.Config{RateSlack: ds.MaxRateSlack}, func(t *testing.T, srv *uplinktest.Server, r *raw, _ *schema.Schema) {
		const seed, messages = 30, 5000
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		for range messages {
			b := make([]byte, rng.IntN(80))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			r.say(b)
		}
		malformed, unknown := dropped(srv)
		if malformed+unknown < messages || // those in bundles count for themselves
			malformed+unknown > messages*11/10 || malformed < messages/4 || unknown < messages/4 {
			t.Errorf("%d messages, %d malformed and %d of an unknown RPC", messages, malformed, unknown)
		}
	})
}

func TestMalformedControl(t *testing.T) {
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		bind, err := (&control.BindRequest{Name: buttons.RPC()}).Append(nil)
		uplinktest.Must(t, err)
		bound, err := (&control.BindAnswer{Ring: 64}).Append(nil)
		uplinktest.Must(t, err)
		for i, b := range [][]byte{
			{},
			{byte(control.Acks)},
			(&rpcdelta.Ack{Seq: 1}).Append([]byte{byte(control.Acks)}), // to a server
			bound, // as well
			{byte(control.Bind)},
			{byte(control.Bind), 0xdd, 0xff, 0xff, 0xff, 0xff},                         // an array of 2^32-1
			{byte(control.Bind), 0xdf, 0xff, 0xff, 0xff, 0xff},                         // a map
			{byte(control.Bind), 0x98, 0x00, 0xdb, 0xff, 0xff, 0xff, 0xff},             // a string
			{byte(control.Bind), 0x98, 0x00, 0xa0, 0x00, 0xdd, 0x7f, 0xff, 0xff, 0xff}, // the fields
			append([]byte{byte(control.Bind)}, strings.Repeat("\x91", 1000)...),        // deep
			append([]byte{byte(control.Bind)}, strings.Repeat("\xdc\xff\xff", 300)...), // both
			bind[:len(bind)-1],
			append(bind[:len(bind):len(bind)], 0),
			{0xc0},
			{0xff, 1, 2, 3},
			{0x13},
			{byte(control.Bundle)},
			{byte(control.Bundle), 200, 2, 3},
			{byte(control.Bundle), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		} {
			r.say(b)
			if malformed, unknown := dropped(srv); malformed != uint64(i+1) || unknown != 0 {
				t.Fatalf("after %x: %d malformed, %d unknown", b, malformed, unknown)
			}
		}
		if len(r.answers) != 0 {
			t.Errorf("the server answered %+v", r.answers)
		}
	})
}

// TestManyBinds asks for all numbers there are.
func TestManyBinds(t *testing.T) {
	var records atomic.Int64
	besides(t, ds.Config{Logger: slog.New(counter{&records})}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		bound := 0
		for range 3 {
			for n := range rpcdelta.MaxRPC + 1 {
				req := request(n, buttons, n%2 == 1)
				settle(20 * ms) // within the limit of requests
				switch a := r.bind(req); a.Reason {
				case control.ReasonNone:
					bound++
				case control.ReasonNumber:
				default:
					t.Fatalf("number %d: %+v", n, a)
				}
			}
		}
		if bound != 3*8 { // the same ones each time
			t.Errorf("bound %d times", bound)
		}
		for name, req := range map[string]control.BindRequest{
			"other channel": request(0, buttons, true),
			"other name":    {RPC: 0, Name: strings.Repeat("x", 1100)},
			"other schema":  {RPC: 0, Name: "Buttons", Fingerprint: 1, Fields: make([]uint16, 300)},
			"other codec":   {RPC: 100, Name: "Buttons", Fingerprint: buttons.Fingerprint(), Codec: "morse"},
		} {
			if a := r.bind(req); a.Reason == control.ReasonNone {
				t.Errorf("%s: bound", name)
			}
		}
		if n := records.Load(); n > 40 {
			t.Errorf("%d log records", n)
		}
		if malformed, unknown := dropped(srv); malformed+unknown != 0 {
			t.Errorf("%d malformed, %d unknown", malformed, unknown)
		}
	})
}

// counter counts log records.
type counter struct{ n *atomic.Int64 }

func (c counter) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (c counter) Handle(context.Context, slog.Record) error    { c.n.Add(1); return nil }
func (c counter) WithAttrs([]slog.Attr) slog.Handler           { return c }
func (c counter) WithGroup(string) slog.Handler                { return c }

// TestDropsByReason makes each drop happen, and is counted for it.
func TestDropsByReason(t *testing.T) {
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		const number = 9
		if a := r.bind(request(number, buttons, false)); a.Reason != control.ReasonNone {
			t.Fatalf("%+v", a)
		}
		enc, err := rpcdelta.NewEncoder(buttons, rpcdelta.EncoderConfig{RPC: number})
		uplinktest.Must(t, err)
		payload := func() []byte {
			b, _, err := enc.AppendFrame(nil, buttons.NewFrame())
			uplinktest.Must(t, err)
			return b
		}
		var want [ds.InvalidAck + 1]uint64
		expect := func(what string, d ds.Drop, b []byte) {
			t.Helper()
			want[d]++
			r.say(b)
			got := srv.Stats().RPCs[0]
			if got.RPC != "Buttons" || got.Drops != want {
				t.Fatalf("%s: %s counts %v, want %v", what, got.RPC, got.Drops, want)
			}
		}
		// A header that names a baseline, and perhaps its hash.
		delta := func(flags, seq, distance byte, rest ...byte) []byte {
			return append([]byte{flags, number, seq, 0, distance}, rest...)
		}
		expect("a delta first", ds.BaselineMissing, delta(0xa0, 10, 3, 0))
		first := payload()
		r.say(first)
		expect("twice", ds.Duplicate, first)
		lost := payload()
		r.say(payload())
		expect("overtaken", ds.Late, lost)
		expect("overtaken twice", ds.Late, lost)
		expect("a baseline that was lost", ds.BaselineMissing, delta(0xa0, 3, 2, 0))
		expect("a wrong hash", ds.Desync, delta(0xb0, 3, 1, 0xde, 0xad, 0))
		expect("a zero too many", ds.Malformed, delta(0x80, 3, 0, 0))
		expect("a long one", ds.Malformed, delta(0x80, 3, 0, make([]byte, 500)...))
		settle(200 * ms)
		if a := r.acks[len(r.acks)-1]; a.RPC != number || a.Seq != 2 || a.Trouble == rpcdelta.NoTrouble {
			t.Errorf("the last ack is %+v", a)
		}
		r.say(payload())
		got := srv.Stats().RPCs[0]
		if got.Frames() != 3 || got.Missed != 1 || got.Drops != want {
			t.Errorf("after all that %+v", got)
		}

		malformed, unknown := dropped(srv)
		wrong, err := rpcdelta.NewEncoder(buttons, rpcdelta.EncoderConfig{RPC: number + 1})
		uplinktest.Must(t, err)
		b, _, err := wrong.AppendFrame(nil, buttons.NewFrame())
		uplinktest.Must(t, err)
		r.say(b)
		r.say(delta(0x80, 3, 8, 0))                   // an epoch out of range
		uplinktest.Must(t, r.SendReliable(payload())) // the wrong channel, which ends the session
		settle(100 * ms)
		if m, u := dropped(srv); m != malformed+1 || u != unknown+2 {
			t.Errorf("%d malformed and %d unknown, want %d and %d", m, u, malformed+1, unknown+2)
		}
	})
}

// TestTransportDrops shows what the transport drops before RPCs are looked at.
func TestTransportDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(40*ms, simnet.Config{Duplicate: 1, Seed: 31})
		network := uplinktest.NewNetwork(t, up, down)
		journal := uplinktest.NewJournal(t, 1)
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error { return ds.Handle(s, "Move", journal.Handle) })
		conn := uplinktest.Dial(t, network, client.Config{})
		play(t, uplinktest.Bind(t, conn, "Move"), 1, 0, 300, 60)
		settle(time.Second)
		st := srv.Stats()
		if journal.Only().Frames() != 300 || st.RPCs[0].Drops != [ds.InvalidAck + 1]uint64{} || st.Transport.Dropped.Duplicate < 300 {
			t.Errorf("%+v", st)
		}
		if n := conn.Stats().Transport.Dropped.Duplicate; n < 50 {
			t.Errorf("the client dropped %d duplicates", n)
		}
	})
}

// TestDropNames has each reason have a name of its own.
func TestDropNames(t *testing.T) {
	seen := map[string]bool{}
	for d := ds.BaselineMissing; d <= ds.Rejected; d++ {
		if name := fmt.Sprint(d); name == "" || seen[name] {
			t.Errorf("reason %d is called %q", uint8(d), name)
		} else {
			seen[name] = true
		}
	}
}

// TestFloodOfReplies: a client that replies to an offer more often than it may loses its session.
func TestFloodOfReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{}, simnet.Config{})
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
		for end := time.Now().Add(time.Second); time.Now().Before(end) && r.SendReliable(control.AppendReply(nil, 0, control.Answer(sent%2))) == nil; sent++ {
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
