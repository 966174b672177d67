package ds_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// raw is a client that sends any messages within a valid session.
type raw struct {
	*transport.Conn
	unheard
	t       *testing.T
	wait    time.Duration // until an answer has arrived
	answers []control.BindAnswer
	acks    []rpcdelta.Ack
}

func dialRaw(t *testing.T, n transport.Network) *raw {
	t.Helper()
	return dialRawAt(t, uplinktest.Addr, transport.Config{Network: n}, time.Millisecond)
}

// dialRawAt dials an address, over links with a round-trip time below wait.
func dialRawAt(t *testing.T, addr string, cfg transport.Config, wait time.Duration) *raw {
	t.Helper()
	r := &raw{t: t, wait: wait}
	conn, err := transport.Dial(t.Context(), addr, cfg, r)
	uplinktest.Must(t, err)
	r.Conn = conn
	t.Cleanup(func() { uplinktest.Must(t, conn.Close()) })
	return r
}

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

// say sends a message and waits until it has arrived.
func (r *raw) say(b []byte) {
	r.t.Helper()
	uplinktest.Must(r.t, r.Send(b))
	settle(r.wait)
}

// request returns a valid request to bind an RPC.
func request(number int, s *schema.Schema, reliable bool) control.BindRequest {
	return control.BindRequest{
		RPC: msgpack.Byte(number), Name: s.RPC(), Fingerprint: s.Fingerprint(), Fields: control.FieldHashes(s),
		RateHz: 60, Ring: 64, Codec: rpcdelta.DefaultCodec.String(), Reliable: reliable,
	}
}

// bind sends a request and returns the answer.
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

// besides runs attack against a server of the RPCs Move and Buttons while an honest player calls
// Move. The player must not notice.
func besides(t *testing.T, cfg ds.Config, attack func(*testing.T, *uplinktest.Server, *raw, *schema.Schema)) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		journal, buttons := uplinktest.NewJournal(t, 1), buttonsSchema(t)
		srv := uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
			return errors.Join(ds.Handle(s, "Move", journal.Handle), ds.HandleSchema(s, buttons, func(*ds.Player, ds.Frame[*schema.Frame]) {}))
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
			t.Errorf("%d of the honest player's %d frames were delivered", l.Frames(), sent)
		}
		if st := move.Stats(); sent > 100 && st.Delta < sent*9/10 {
			t.Errorf("%d of the honest player's %d frames are deltas", st.Delta, sent)
		}
	})
}

// dropped returns the counts of messages that belong to no RPC.
func dropped(srv *uplinktest.Server) (malformed, unknown uint64) {
	st := srv.Stats()
	return st.Drops[ds.Malformed], st.Drops[ds.UnknownRPC]
}

// TestMalformedControl verifies that malformed unreliable messages are counted and not answered.
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
			bound, // likewise
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

// record is a log that can be read while it is written.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(b)
}

func (r *record) count(s string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.buf.String(), s)
}

// TestReliableViolations verifies that a reliable message that no client sends ends the session. It
// is counted by reason and logged once, and nothing after it is handled.
func TestReliableViolations(t *testing.T) {
	const unreliable, reliable = 3, 4 // numbers of the client's RPCs
	const unknown, malformed, unbound = "unknown reliable message", "malformed reliable frame", "reliable frame of an RPC that is not bound"
	for _, tt := range []struct {
		name    string
		message []byte
		reason  string
		drop    ds.Drop
	}{
		{"unknown type", []byte{0xc0, 1, 2}, unknown, ds.Malformed},
		{"message of a server", []byte{byte(control.Piece), 1, 2}, unknown, ds.Malformed},
		{"message of the other channel", []byte{byte(control.DownAck), 0}, unknown, ds.Malformed},
		{"bundle", []byte{byte(control.Bundle), 1, 0, 0}, unknown, ds.Malformed},
		{"malformed bind request", []byte{byte(control.Bind), 0xdd, 0xff}, "malformed bind request", ds.Malformed},
		{"malformed reply", []byte{byte(control.Reply), 1}, "reply to no offer", ds.Malformed},
		{"reply to no offer", replication.AppendReply(nil, 5, replication.Request), "reply to no offer", ds.Malformed},
		{"long message", control.AppendMessage(nil, make([]byte, ds.MaxMessage+1)), "a message is too long", ds.Malformed},
		{"frame without a number", []byte{0x80}, malformed, ds.Malformed},
		{"frame of an RPC that is not bound", []byte{0x80, 9, 0, 0, 0}, unbound, ds.UnknownRPC},
		{"frame of the other channel's RPC", []byte{0x80, unreliable, 0, 0, 0}, unbound, ds.UnknownRPC},
		{"malformed frame", []byte{0x80, reliable, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, malformed, ds.Malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log record
			cfg := ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			besides(t, cfg, func(t *testing.T, srv *uplinktest.Server, r *raw, schema *schema.Schema) {
				for number, channel := range map[int]bool{unreliable: false, reliable: true} {
					if a := r.bind(request(number, schema, channel)); a.Reason != control.ReasonNone {
						t.Fatalf("%+v", a)
					}
				}
				for range 100 { // all but the first are ignored
					_ = r.SendReliable(tt.message) // until there is a backlog, or the session has ended
				}
				settle(100 * ms)
				err := r.Send([]byte{0})
				if !errors.Is(err, transport.ErrClosedByPeer) || !strings.Contains(err.Error(), tt.reason) {
					t.Errorf("the session ended with %v, want %q", err, tt.reason)
				}
				st := srv.Stats()
				drops := st.Drops
				if tt.name == "malformed frame" { // counted for its RPC
					drops = st.RPCs[1].Drops
				}
				if drops[tt.drop] != 1 {
					t.Errorf("counted %v, want %v once", drops, tt.drop)
				}
				if n := log.count("session ended"); n != 1 || log.count(fmt.Sprintf("reason=%q", tt.reason)) != 1 {
					t.Errorf("logged %d times: %s", n, log.buf.String())
				}
			})
		})
	}
}

// TestManyBinds verifies that requests for all numbers bind 8 of them and log little.
func TestManyBinds(t *testing.T) {
	var log record
	besides(t, ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		bound := 0
		for range 3 {
			for n := range rpcdelta.MaxRPC + 1 {
				settle(20 * ms) // within the limit of requests
				switch a := r.bind(request(n, buttons, n%2 == 1)); a.Reason {
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
		if malformed, unknown := dropped(srv); malformed+unknown != 0 || log.count("\n") > 40 {
			t.Errorf("%d malformed, %d unknown, %d log records", malformed, unknown, log.count("\n"))
		}
	})
}

// TestDropsByReason verifies that payloads are dropped for the expected reason.
func TestDropsByReason(t *testing.T) {
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		const number = 9
		payloads := func(number int) func() []byte {
			enc, err := rpcdelta.NewEncoder(buttons, rpcdelta.EncoderConfig{RPC: number})
			uplinktest.Must(t, err)
			return func() []byte {
				b, _, err := enc.AppendFrame(nil, buttons.NewFrame())
				uplinktest.Must(t, err)
				return b
			}
		}
		next := payloads(number)
		if a := r.bind(request(number, buttons, false)); a.Reason != control.ReasonNone {
			t.Fatalf("%+v", a)
		}
		// header returns one that names a baseline, and perhaps its hash.
		header := func(flags, seq, distance byte, rest ...byte) []byte {
			return append([]byte{flags, number, seq, 0, distance}, rest...)
		}
		first := next()
		var lost []byte
		var want [ds.InvalidAck + 1]uint64
		for _, c := range []struct {
			name string
			drop ds.Drop
			b    func() []byte
		}{
			{"delta before any baseline", ds.BaselineMissing, func() []byte { return header(0xa0, 10, 3, 0) }},
			{"duplicate", ds.Duplicate, func() []byte { r.say(first); return first }},
			{"late", ds.Late, func() []byte { lost = next(); r.say(next()); return lost }},
			{"late again", ds.Late, func() []byte { return lost }},
			{"lost baseline", ds.BaselineMissing, func() []byte { return header(0xa0, 3, 2, 0) }},
			{"wrong hash", ds.Desync, func() []byte { return header(0xb0, 3, 1, 0xde, 0xad, 0) }},
			{"trailing zero", ds.Malformed, func() []byte { return header(0x80, 3, 0, 0) }},
			{"long", ds.Malformed, func() []byte { return header(0x80, 3, 0, make([]byte, 500)...) }},
		} {
			want[c.drop]++
			r.say(c.b())
			if got := srv.Stats().RPCs[0]; got.RPC != "Buttons" || got.Drops != want {
				t.Fatalf("%s: %s counts %v, want %v", c.name, got.RPC, got.Drops, want)
			}
		}
		settle(200 * ms)
		if a := r.acks[len(r.acks)-1]; a.RPC != number || a.Seq != 2 || a.ResetReason == nil {
			t.Errorf("the last ack is %+v", a)
		}
		r.say(next())
		if got := srv.Stats().RPCs[0]; got.Frames() != 3 || got.Missed != 1 || got.Drops != want {
			t.Errorf("at the end %+v", got)
		}

		r.say(payloads(number + 1)())              // not bound
		r.say(header(0x80, 3, 8, 0))               // an epoch out of range
		uplinktest.Must(t, r.SendReliable(next())) // the wrong channel, which ends the session
		settle(100 * ms)
		if malformed, unknown := dropped(srv); malformed != 1 || unknown != 2 {
			t.Errorf("%d malformed and %d unknown, want 1 and 2", malformed, unknown)
		}
	})
}
