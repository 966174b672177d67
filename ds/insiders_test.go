package ds_test

import (
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// The attacks of this file come from a client with a good token and a session of its own.

const buttonsHz = 60

// insider connects one, and binds Buttons as number 0.
func (s *siege) insider() *raw {
	r := dialRawAt(s.t, siegeAddr.String(), transport.Config{Network: at{s.Network, place(0).String()}, Token: s.enemy()}, 100*ms)
	if a := r.bind(request(0, s.schema, false)); a.Reason != control.ReasonNone {
		s.t.Fatalf("%+v", a)
	}
	return r
}

// tell sends a message, which counts as tried.
func (s *siege) tell(r *raw, b []byte) {
	s.tried++
	uplinktest.Must(s.t, r.Send(b))
}

// payloads makes correct ones of Buttons, one after the other.
func (s *siege) payloads() func() []byte {
	enc, err := rpcdelta.NewEncoder(s.schema, rpcdelta.EncoderConfig{Redundancy: rpcdelta.RedundancyOff})
	uplinktest.Must(s.t, err)
	f := s.schema.NewFrame()
	return func() []byte {
		f.Ints[0] = (f.Ints[0] + 1) & 0xffff
		b, _, err := enc.AppendFrame(nil, f)
		uplinktest.Must(s.t, err)
		return b
	}
}

// owned counts what the insider's own calls came to: payloads that were taken are its right,
// up to the limit of frames.
func (s *siege) owned() {
	settle(200 * ms)
	for _, r := range s.srv.Stats().RPCs {
		if r.RPC == s.schema.RPC() {
			s.served += r.Messages - r.Drops[ds.RateLimited]
		}
	}
	most := uint64(2*buttonsHz*(2+(siegeTime+time.Second)/time.Second) + rpcdelta.MaxHeld)
	s.count(func(o *outcome) { o.in += max(o.enemy, most) - most })
}

// lieFrames alters correct payloads: baseline, hash, number of frames; then, which makes
// the others late, sequence and any bit.
func lieFrames(s *siege) {
	r, next := s.insider(), s.payloads()
	s.pace(600, func(i int) {
		b := next()
		random := byte(s.rng.Uint32())
		switch lie := i % 4; {
		case lie == 0: // none
		case lie == 1 && i < 300:
			b = append([]byte{0xa0, 0, b[2], b[3], random}, b[5:]...) // a baseline
		case lie == 2 && i < 300:
			b = append([]byte{0xb0, 0, b[2], b[3], 2, random, random}, b[5:]...) // the hash of one that is there
		case lie == 1:
			b[2], b[3] = random, byte(s.rng.Uint32()) // the sequence
		case lie == 2:
			b[s.rng.IntN(len(b))] ^= 1 << (random % 8)
		default:
			b = append(b[:5], s.rubbish(1+s.rng.IntN(20))...) // frames of any number
		}
		s.tell(r, b)
	})
	s.owned()
}

// lieBundles sends bundles of other numbers and lengths than they say.
func lieBundles(s *siege) {
	r := s.insider()
	s.pace(400, func(i int) {
		b := append([]byte{byte(control.Bundle) | byte(i&15)}, s.rubbish(s.rng.IntN(40))...)
		if i%2 == 0 && len(b) > 1 {
			b[1] = 0xff // a length beyond the end
		}
		s.tell(r, b)
	})
	s.owned()
}

// lieBinds asks for what cannot be.
func lieBinds(s *siege) {
	r := s.insider()
	requests := []func(*control.BindRequest){
		func(q *control.BindRequest) { q.RateHz = math.NaN() },
		func(q *control.BindRequest) { q.RateHz = math.Inf(1) },
		func(q *control.BindRequest) { q.RateHz = -60 },
		func(q *control.BindRequest) { q.RateHz = 1e9 },
		func(q *control.BindRequest) { q.Ring = -1 },
		func(q *control.BindRequest) { q.Ring = math.MaxInt32 },
		func(q *control.BindRequest) { q.Frames = -1 },
		func(q *control.BindRequest) { q.Frames = math.MaxInt32 },
		func(q *control.BindRequest) { q.Codec = "morse" },
		func(q *control.BindRequest) { q.Name = strings.Repeat("x", 900) },
		func(q *control.BindRequest) { q.Fingerprint++; q.Fields = make([]uint16, 250) },
		func(q *control.BindRequest) { q.RPC, q.Reliable = 0, true }, // which is bound otherwise
	}
	before := len(r.answers)
	s.pace(300, func(i int) {
		q := request(1+i%rpcdelta.MaxRPC, s.schema, false)
		if i%20 == 0 { // number 300, whose low 8 bits are a number
			b, err := q.Append(nil)
			uplinktest.Must(s.t, err)
			const uint16Code, at, size = 0xcd, 2, 2 // the number is the array's first element
			s.tell(r, slices.Concat(b[:at], []byte{uint16Code, 300 >> 8, 300 & 0xff}, b[at+size:]))
			return
		}
		requests[i%len(requests)](&q)
		s.ask(r, q)
	})
	s.answered(r, before)
}

func (s *siege) ask(r *raw, q control.BindRequest) {
	b, err := q.Append(nil)
	uplinktest.Must(s.t, err)
	s.tell(r, b)
}

// answered counts the answers to requests to bind: no more than so many may be granted.
func (s *siege) answered(r *raw, before int) {
	settle(200 * ms)
	const most = 8
	granted, refused := map[uint8]bool{0: true}, uint64(0)
	for _, a := range r.answers[before:] {
		if a.Reason != control.ReasonNone {
			refused++
			continue
		}
		s.served++
		granted[a.RPC] = true
	}
	s.elsewhere = map[string]uint64{"bind": refused}
	s.count(func(o *outcome) { o.in += uint64(max(len(granted), most) - most) })
}

// lieAcks sends what only servers send.
func lieAcks(s *siege) {
	r := s.insider()
	bound, err := (&control.BindAnswer{Ring: 64}).Append(nil)
	uplinktest.Must(s.t, err)
	s.pace(400, func(i int) {
		ack := rpcdelta.Ack{Seq: uint16(s.rng.Uint32()), Window: s.rng.Uint64(), Len: 64, Whole: true}
		switch i % 3 {
		case 0:
			s.tell(r, ack.Append([]byte{byte(control.Acks)}))
		case 1:
			s.tell(r, bound)
		default:
			s.tell(r, []byte{0xc5}) // the server leaves
		}
	})
}

// floodFrames calls Buttons 70 times as often as declared.
func floodFrames(s *siege) {
	r, next := s.insider(), s.payloads()
	s.pace(many(20_000), func(int) { s.tell(r, next()) })
	s.owned()
}

// floodDatagrams sends what makes no message, and full bundles.
func floodDatagrams(s *siege) {
	r := s.insider()
	full := control.NewBundler(transport.MaxPayload)
	for range control.MaxBundle {
		full.Add([]byte{0x80, 0, 0, 0, 0})
	}
	bundle := full.Take()
	s.pace(many(50_000), func(i int) {
		if i%2 == 0 {
			s.tell(r, bundle)
		} else {
			s.tell(r, s.rubbish(1+s.rng.IntN(100)))
		}
	})
	s.owned()
}

// mostRequests is how many requests to bind and replies to offers the server handles in an
// attack's time: 50 a second, and at once 100 and one for each of the 8 bindings.
const mostRequests = 50*(siegeTime+time.Second)/time.Second + 100 + 8

// floodBinds asks for all numbers, again and again.
func floodBinds(s *siege) {
	r := s.insider()
	before := len(r.answers)
	s.pace(20_000, func(i int) { s.ask(r, request(i%(rpcdelta.MaxRPC+1), s.schema, i%2 == 1)) })
	s.answered(r, before)
	if n := len(r.answers) - before; n > int(mostRequests) {
		s.t.Errorf("%d requests are answered, want at most %d", n, mostRequests)
	}
}

// floodRequests sends requests over the reliable channel until the server ends the session.
func floodRequests(make func(*siege, int) []byte) func(*siege) {
	return func(s *siege) {
		r := s.insider()
		before := len(r.answers)
		s.pace(20_000, func(i int) {
			switch err := r.SendReliable(make(s, i)); {
			case err == nil:
				s.tried++
			case !errors.Is(err, transport.ErrBacklog) && !errors.Is(err, net.ErrClosed):
				s.t.Error(err)
			}
		})
		s.answered(r, before)
		if err := r.Send(nil); !errors.Is(err, transport.ErrClosedByPeer) {
			s.t.Errorf("the session goes on: %v", err)
		}
		st := s.srv.Stats()
		handled := s.served + s.elsewhere["bind"] + st.Drops[ds.Malformed]
		if handled > uint64(mostRequests) {
			s.t.Errorf("%d requests are handled, want at most %d", handled, mostRequests)
		}
		s.elsewhere["end of the session"] = s.tried - handled - st.Drops[ds.RateLimited]
	}
}

func bindAny(s *siege, i int) []byte {
	q := request(i%(rpcdelta.MaxRPC+1), s.schema, i%2 == 1)
	b, err := q.Append(nil)
	uplinktest.Must(s.t, err)
	return b
}

// floodMessages sends the game's own messages until the server has enough.
func floodMessages(size int) func(*siege) {
	return func(s *siege) {
		r := s.insider()
		message := control.AppendMessage(nil, make([]byte, size))
		s.pace(20_000, func(int) {
			switch err := r.SendReliable(message); {
			case err == nil:
				s.tried++
			case !errors.Is(err, transport.ErrBacklog) && !errors.Is(err, net.ErrClosed):
				s.t.Error(err)
			}
		})
		settle(100 * ms)
		st := s.srv.Stats()
		if err := r.Send(nil); !errors.Is(err, transport.ErrClosedByPeer) {
			s.t.Errorf("the session goes on: %v", err)
		}
		s.count(func(o *outcome) { s.served = o.messages })
		s.elsewhere = map[string]uint64{"end of the session": s.tried - s.served - st.Drops[ds.RateLimited] - st.Drops[ds.QueueFull]}
	}
}
