package ds_test

import (
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

// The attackers of this file are clients with a valid token and a session of their own.

const buttonsHz = 60

// insider connects an attacker and binds Buttons as RPC 0.
func (s *scenario) insider() *raw {
	r := dialRawAt(s.t, hostAddr.String(), endpoint.Config{Network: at{s.Network, place(0).String()}, Token: s.attacker()}, 100*ms)
	r.mustBind(request(0, s.schema, false))
	return r
}

// tell sends a message, which counts as tried.
func (s *scenario) tell(r *raw, b []byte) {
	s.tried++
	uplinktest.Must(s.t, r.Send(b))
}

// payloads returns a function that returns valid payloads of Buttons.
func (s *scenario) payloads() func() []byte {
	return payloadsOf(s.t, s.schema, rpcdelta.EncoderConfig{Redundancy: rpcdelta.RedundancyOff})
}

// serveFrames counts the attacker's delivered payloads as served, and frames above its rate limit
// as violations.
func (s *scenario) serveFrames() {
	settle(200 * ms)
	for _, r := range s.srv.Stats().RPCs {
		if r.RPC == s.schema.RPC() {
			s.served += r.Messages - r.Drops[ds.RateLimited]
		}
	}
	limit := uint64(2*buttonsHz*(2+(attackTime+time.Second)/time.Second) + rpcdelta.MaxHeld) // by the default RateSlack
	s.count(func(o *outcome) { o.in += max(o.frames, limit) - limit })
}

// falseFrames alters valid payloads: baseline, hash and number of frames first, then the sequence
// number and any bit, since these make later frames late.
func falseFrames(s *scenario) {
	r, next := s.insider(), s.payloads()
	s.pace(600, func(i int) {
		b := next()
		random := byte(s.rng.Uint32())
		switch kind := i % 4; {
		case kind == 0: // unaltered
		case kind == 1 && i < 300:
			b = append([]byte{0xa0, 0, b[2], b[3], random}, b[5:]...) // baseline
		case kind == 2 && i < 300:
			b = append([]byte{0xb0, 0, b[2], b[3], 2, random, random}, b[5:]...) // hash of a baseline
		case kind == 1:
			b[2], b[3] = random, byte(s.rng.Uint32()) // sequence number
		case kind == 2:
			b[s.rng.IntN(len(b))] ^= 1 << (random % 8)
		default:
			b = append(b[:5], s.random(1+s.rng.IntN(20))...) // number of frames
		}
		s.tell(r, b)
	})
	s.serveFrames()
}

func malformedBundles(s *scenario) {
	r := s.insider()
	s.pace(400, func(i int) {
		b := append([]byte{byte(message.Bundle) | byte(i&15)}, s.random(s.rng.IntN(40))...)
		if i%2 == 0 && len(b) > 1 {
			b[1] = 0xff // a length beyond the end
		}
		s.tell(r, b)
	})
	s.serveFrames()
}

func invalidBinds(s *scenario) {
	r := s.insider()
	requests := []func(*message.BindRequest){
		func(q *message.BindRequest) { q.RateHz = math.NaN() },
		func(q *message.BindRequest) { q.RateHz = math.Inf(1) },
		func(q *message.BindRequest) { q.RateHz = -60 },
		func(q *message.BindRequest) { q.RateHz = 1e9 },
		func(q *message.BindRequest) { q.PerTick = make([]int64, 100) }, // has no velocities
		func(q *message.BindRequest) { q.Ring = -1 },
		func(q *message.BindRequest) { q.Ring = math.MaxInt32 },
		func(q *message.BindRequest) { q.Frames = -1 },
		func(q *message.BindRequest) { q.Frames = math.MaxInt32 },
		func(q *message.BindRequest) { q.Codec = "morse" },
		func(q *message.BindRequest) { q.Name = strings.Repeat("x", 900) },
		func(q *message.BindRequest) { q.Fingerprint++; q.Fields = make([]uint16, 250) },
		func(q *message.BindRequest) { q.RPC, q.Reliable = 0, true }, // is bound otherwise
	}
	before := len(r.answers)
	s.pace(300, func(i int) {
		q := request(1+i%rpcdelta.MaxRPC, s.schema, false)
		if i%20 != 0 {
			requests[i%len(requests)](&q)
		}
		b, err := q.Append(nil)
		uplinktest.Must(s.t, err)
		if i%20 == 0 { // number 300, whose low 8 bits are valid; it is the array's first element
			const uint16Code, at, size = 0xcd, 2, 2
			b = slices.Concat(b[:at], []byte{uint16Code, 300 >> 8, 300 & 0xff}, b[at+size:])
		}
		s.tell(r, b)
	})
	s.serveBinds(r, before)
}

// serveBinds counts the answers to requests to bind, and bindings above the limit as violations.
func (s *scenario) serveBinds(r *raw, before int) {
	settle(200 * ms)
	const limit = 8
	granted, refused := map[uint8]bool{0: true}, uint64(0)
	for _, a := range r.answers[before:] {
		if a.Reason != message.ReasonNone {
			refused++
			continue
		}
		s.served++
		granted[a.RPC] = true
	}
	s.elsewhere = map[string]uint64{"bind": refused}
	s.count(func(o *outcome) { o.in += uint64(max(len(granted), limit) - limit) })
	if n := len(r.answers) - before; n > maxRequests {
		s.t.Errorf("%d requests are answered, want at most %d", n, maxRequests)
	}
}

// maxRequests is the number of requests to bind that the server handles during an attack: 50 a
// second, and at once 100 and one for each of the 8 bindings.
const maxRequests = int(50*(attackTime+time.Second)/time.Second) + 100 + 8

func serverMessages(s *scenario) {
	r := s.insider()
	bound, err := (&message.BindAnswer{Ring: 64}).Append(nil)
	uplinktest.Must(s.t, err)
	s.pace(400, func(i int) {
		ack := rpcdelta.Ack{Seq: uint16(s.rng.Uint32()), Window: s.rng.Uint64(), Len: 64, Whole: true}
		s.tell(r, [][]byte{ack.Append([]byte{byte(message.Acks)}), bound, {byte(message.Leaving)}}[i%3])
	})
}

// floodFrames calls Buttons 70 times as often as declared.
func floodFrames(s *scenario) {
	r, next := s.insider(), s.payloads()
	s.pace(many(20_000), func(int) { s.tell(r, next()) })
	s.serveFrames()
}

func floodDatagrams(s *scenario) {
	r := s.insider()
	full := message.NewBundler(transport.MaxPayload)
	for range message.MaxBundle {
		full.Add([]byte{0x80, 0, 0, 0, 0})
	}
	bundle := full.Take()
	s.pace(many(50_000), func(i int) {
		if i%2 == 0 {
			s.tell(r, bundle)
		} else {
			s.tell(r, s.random(1+s.rng.IntN(100)))
		}
	})
	s.serveFrames()
}

// bindAny returns a request to bind any number.
func bindAny(s *scenario, i int) []byte {
	q := request(i%(rpcdelta.MaxRPC+1), s.schema, i%2 == 1)
	b, err := q.Append(nil)
	uplinktest.Must(s.t, err)
	return b
}

func floodBinds(s *scenario) {
	r := s.insider()
	before := len(r.answers)
	s.pace(20_000, func(i int) { s.tell(r, bindAny(s, i)) })
	s.serveBinds(r, before)
}

// floodReliable sends messages over the reliable channel until the server ends the session.
func (s *scenario) floodReliable(r *raw, message func(i int) []byte) {
	s.pace(20_000, func(i int) {
		switch err := r.SendReliable(message(i)); {
		case err == nil:
			s.tried++
		case !errors.Is(err, session.ErrBacklog) && !errors.Is(err, net.ErrClosed):
			s.t.Error(err)
		}
	})
	settle(100 * ms)
	if err := r.Send(nil); !errors.Is(err, session.ErrLimit) {
		s.t.Errorf("the session continues: %v", err)
	}
}

func floodReliableBinds(s *scenario) {
	r := s.insider()
	before := len(r.answers)
	s.floodReliable(r, func(i int) []byte { return bindAny(s, i) })
	s.serveBinds(r, before)
	st := s.srv.Stats()
	handled := s.served + s.elsewhere["bind"] + st.Drops[ds.Malformed]
	s.elsewhere["end of the session"] = s.tried - handled - st.Drops[ds.RateLimited]
}

func floodMessages(size int) func(*scenario) {
	return func(s *scenario) {
		message := message.AppendMessage(nil, make([]byte, size))
		s.floodReliable(s.insider(), func(int) []byte { return message })
		st := s.srv.Stats()
		s.count(func(o *outcome) { s.served = o.messages })
		s.elsewhere = map[string]uint64{"end of the session": s.tried - s.served - st.Drops[ds.RateLimited] - st.Drops[ds.QueueFull]}
	}
}
