package ds_test

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/versions"
)

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
		{"malformed handover", []byte{byte(message.Handover), 1, 2}, "malformed handover", ds.Malformed},
		{"release by nobody", message.AppendRelease(nil, message.NewSecret()), "malformed handover", ds.Malformed},
		{"message of a server", []byte{byte(message.Piece), 1, 2}, unknown, ds.Malformed},
		{"message of the other channel", []byte{byte(message.DownAck), 0}, unknown, ds.Malformed},
		{"bundle", []byte{byte(message.Bundle), 1, 0, 0}, unknown, ds.Malformed},
		{"malformed bind request", []byte{byte(message.Bind), 0xdd, 0xff}, "malformed bind request", ds.Malformed},
		{"malformed reply", []byte{byte(message.Reply), 1}, "reply to no offer", ds.Malformed},
		{"reply to no offer", replication.AppendReply(nil, 5, replication.Request), "reply to no offer", ds.Malformed},
		{"long message", message.AppendMessage(nil, make([]byte, ds.MaxMessage+1)), "a message of 8193 bytes, at most 8192 are permitted", ds.Malformed},
		{"frame without a number", []byte{0x80}, malformed, ds.Malformed},
		{"frame of an RPC that is not bound", []byte{0x80, 9, 0, 0, 0}, unbound, ds.UnknownRPC},
		{"frame of the other channel's RPC", []byte{0x80, unreliable, 0, 0, 0}, unbound, ds.UnknownRPC},
		{"malformed frame", []byte{0x80, reliable, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, malformed, ds.Malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log uplinktest.Record
			cfg := ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			besides(t, cfg, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
				moves, err := schema.Compile[move]("Move", 0)
				uplinktest.Must(t, err)
				r.mustBind(request(unreliable, moves.Schema(), false))
				r.mustBind(request(reliable, buttons, true))
				r.sayReliably(tt.message, 100, 0, tt.reason) // all but the first are ignored
				st := srv.Stats()
				drops := st.Drops
				if tt.name == "malformed frame" { // counted for its RPC
					drops = st.RPCs[1].Drops
				}
				if drops[tt.drop] != 1 {
					t.Errorf("counted %v, want %v once", drops, tt.drop)
				}
				if n := log.Count("session ended"); n != 1 || log.Count(fmt.Sprintf("reason=%q", tt.reason)) != 1 {
					t.Errorf("logged %d times: %s", n, log.String())
				}
			})
		})
	}
}

// TestDropsByReason verifies that payloads are dropped for the expected reason.
func TestDropsByReason(t *testing.T) {
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		const number = 9
		next := payloadsOf(t, buttons, rpcdelta.EncoderConfig{RPC: number})
		r.mustBind(request(number, buttons, false))
		// header returns one that names a baseline, and perhaps its hash.
		header := func(flags, seq, distance byte, rest ...byte) []byte {
			return append([]byte{flags, number, seq, 0, distance}, rest...)
		}
		first := next()
		var lost []byte
		var want [ds.AheadOfTime + 1]uint64
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

		r.say(payloadsOf(t, buttons, rpcdelta.EncoderConfig{RPC: number + 1})()) // not bound
		r.say(header(0x80, 3, 8, 0))                                             // an epoch out of range
		uplinktest.Must(t, r.SendReliable(next()))                               // the wrong channel, which ends the session
		settle(100 * ms)
		if malformed, unknown := dropped(srv); malformed != 1 || unknown != 2 {
			t.Errorf("%d malformed and %d unknown, want 1 and 2", malformed, unknown)
		}
	})
}

// payloadsOf returns a function that returns payloads of one frame, each with another value in the
// first field.
func payloadsOf(t *testing.T, s *schema.Schema, cfg rpcdelta.EncoderConfig) func() []byte {
	t.Helper()
	cfg.Redundancy = rpcdelta.RedundancyOff
	enc, err := rpcdelta.NewEncoder(s, cfg)
	uplinktest.Must(t, err)
	f := s.NewFrame()
	return func() []byte {
		f.Ints[0] = (f.Ints[0] + 1) & 0xffff
		b, _, err := enc.AppendFrame(nil, f)
		uplinktest.Must(t, err)
		return b
	}
}

// TestBindLimits verifies that requests for all numbers, at many rates and on both channels, bind
// each RPC once, that others are refused, and that little is logged.
func TestBindLimits(t *testing.T) {
	var log uplinktest.Record
	cfg := ds.Config{Limits: ds.Limits{MaxRate: 305}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	besides(t, cfg, func(t *testing.T, srv *uplinktest.Server, r *raw, buttons *schema.Schema) {
		bound := 0
		for range 3 {
			for n := range rpcdelta.MaxRPC + 1 {
				settle(50 * ms) // within the limit of requests
				req := request(n, buttons, n%2 == 1)
				req.RateHz = float64(50 + n%100) // each a schema of its own
				switch a := r.bind(req); a.Reason {
				case message.ReasonNone:
					bound++
				case message.ReasonNumber:
				default:
					t.Fatalf("number %d: %+v", n, a)
				}
			}
		}
		if bound != 3 { // the same one each time
			t.Errorf("bound %d times", bound)
		}
		settle(time.Second)
		another := request(0, buttons, false)
		another.Prior++
		for want, req := range map[message.Reason]message.BindRequest{
			message.ReasonNumber:  another,
			message.ReasonUnknown: {RPC: 0, Name: strings.Repeat("x", 1100)},
		} {
			if a := r.bind(req); a.Reason != want {
				t.Errorf("%+v, want %v", a, want)
			}
		}
		if malformed, unknown := dropped(srv); malformed+unknown != 0 || log.Count("\n") > 40 {
			t.Errorf("%d malformed, %d unknown, %d log records", malformed, unknown, log.Count("\n"))
		}
	})
}

// TestBindRanges verifies that a number out of its range is refused, also one that is not
// comparable, and before anything else of the request costs time.
func TestBindRanges(t *testing.T) {
	invalid, rate := message.ReasonInvalid, message.ReasonRate
	besides(t, ds.Config{}, func(t *testing.T, _ *uplinktest.Server, r *raw, buttons *schema.Schema) {
		for _, c := range []struct {
			want message.Reason
			set  func(*message.BindRequest)
		}{
			{rate, func(r *message.BindRequest) { r.RateHz = math.NaN() }},
			{rate, func(r *message.BindRequest) { r.RateHz = math.Inf(1) }},
			{rate, func(r *message.BindRequest) { r.RateHz = 250.1 }},
			{rate, func(r *message.BindRequest) { r.RateHz = -1 }},
			{rate, func(r *message.BindRequest) { r.RateHz = 1e-9 }},
			{invalid, func(r *message.BindRequest) { r.Ring = 1 }},
			{invalid, func(r *message.BindRequest) { r.Ring = -1 }},
			{invalid, func(r *message.BindRequest) { r.Ring = rpcdelta.MaxRing + 1 }},
			{invalid, func(r *message.BindRequest) { r.Frames = -1 }},
			{invalid, func(r *message.BindRequest) { r.Frames = rpcdelta.MaxHeld + 1 }},
			{invalid, func(r *message.BindRequest) { r.Batch = -1 }},
			{invalid, func(r *message.BindRequest) { r.Batch = rpcdelta.MaxHeld + 1 }},
			{invalid, func(r *message.BindRequest) { r.Deadline = -1 }},
			{invalid, func(r *message.BindRequest) { r.Deadline = rpcdelta.MaxRepairAge + 1 }},
			{message.ReasonCodec, func(r *message.BindRequest) { r.Codec = "morse" }},
			{invalid, func(r *message.BindRequest) { r.PerTick = []int64{1} }},
			{invalid, func(r *message.BindRequest) { r.Fingerprint, r.Fields = 1, make([]uint16, 300) }},
			{message.ReasonDescribe, func(r *message.BindRequest) { r.Fingerprint, r.Fields = 1, make([]uint16, 2) }},
		} {
			settle(100 * ms)
			req := request(0, buttons, false)
			c.set(&req)
			if a := r.bind(req); a.Reason != c.want {
				t.Errorf("%+v, want %v", a, c.want)
			}
		}
		r.mustBind(request(0, buttons, false))
	})
}

// TestBindRefusalLog verifies that the log of a refused binding contains what was asked for and
// what the server has or permits.
func TestBindRefusalLog(t *testing.T) {
	var log uplinktest.Record
	cfg := ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	besides(t, cfg, func(t *testing.T, _ *uplinktest.Server, r *raw, buttons *schema.Schema) {
		refused := func(req message.BindRequest, want string) {
			settle(time.Second)
			a := r.bind(req)
			if want = fmt.Sprintf("reason=%s player=%d", want, r.ID()); a.Reason == message.ReasonNone || log.Count(want) != 1 {
				t.Errorf("%+v, want %s in\n%s", a, want, log.String())
			}
		}
		refused(message.BindRequest{
			RPC: 1, Name: "Buttons", Codec: "rle", Fingerprint: versions.Fingerprint("Buttons", []string{"Buttons bool"}),
			Fields: []uint16{1}, Described: []message.Described{{Description: "Buttons bool"}},
		}, `"incompatible schema" asked="field 0 of another kind" server="Buttons bits width=16"`)
		fast, deep := request(2, buttons, false), request(2, buttons, false)
		fast.RateHz, deep.Batch = 300, 99
		refused(message.BindRequest{RPC: 2, Name: "Fire"}, `"unknown RPC" asked=Fire server="Move, Buttons"`)
		refused(message.BindRequest{RPC: 2, Name: "Buttons", Fingerprint: buttons.Fingerprint(), Codec: "morse"}, `"unknown codec" asked=morse server="rle, adaptive"`)
		refused(fast, `"rate out of range" asked="300 Hz" server="0.001 to 250 Hz"`)
		refused(deep, `"ring, frames or factors out of range" asked="ring 64, frames 0, batch 99, deadline 0" server="Batch is 99, want 0 to 8"`)
		r.mustBind(request(1, buttons, false))
		refused(request(2, buttons, false), `"number in use, or RPC bound already" asked="number 2" server="Buttons is bound already, as number 1: a session binds an RPC once"`)
		refused(request(1, buttons, true), `"number in use, or RPC bound already" asked="number 1" server="Buttons is bound already, with another rate, channel, schema or delay"`)
	})
}
