package inspect

import (
	"bytes"
	"cmp"
	"time"

	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

type player struct {
	session *Session
	seal    int
	streams map[int]*stream // by RPC number
	waiting *carried        // last received message, until the next one
	taken   int             // memory reserved for waiting
}

// carried is a received datagram or message, with its payloads that have no result yet.
type carried struct {
	at       capture.Record
	payloads []payload
	explain  *Explained // nil: not requested
}

// payload is a payload in a datagram or message.
type payload struct {
	b      []byte
	offset int // offset in the datagram or message
}

func (x *inspection) player(n uint64) *player {
	p := x.players[n]
	if p == nil {
		x.limits.keep(playerSize + sessionSize)
		if x.sum.byPlayer[n] == nil {
			x.sum.byPlayer[n] = &Session{Player: n}
		}
		p = &player{session: x.sum.byPlayer[n], streams: map[int]*stream{}}
		x.players[n] = p
	}
	return p
}

func (x *inspection) opened(b *record.Opened) {
	p := x.player(b.Player)
	s := p.session
	p.seal = b.AEADOverhead
	s.Client, s.ID, s.Addr, s.Suite, s.Before = b.Client, b.Session, b.Addr.String(), b.Suite, b.Again
	s.From = x.at.At.Seconds()
	x.limits.keep(len(s.Addr) + len(s.Suite))
}

func (p *player) closed(x *inspection, b *record.Closed) {
	p.finish(x)
	p.session.Closed, p.session.Cause, p.session.To = true, cmp.Or(b.Cause, "closed by the server"), x.at.At.Seconds()
	x.limits.keep(len(b.Cause))
	for _, s := range p.streams {
		s.free()
	}
	x.limits.Return(playerSize + streamSize*len(p.streams))
	delete(x.players, b.Player)
}

func (p *player) bound(x *inspection, b *record.Bound) {
	if old := p.streams[b.RPC]; old != nil {
		old.free()
	} else {
		x.limits.keep(streamSize)
	}
	p.streams[b.RPC] = newStream(x, b)
}

func (p *player) datagram(x *inspection, b *record.Datagram) {
	s := p.session
	n, bytes, take := &s.Received, &s.ReceivedBytes, p.came
	if b.Sent {
		n, bytes, take = &s.Sent, &s.SentBytes, p.sent
	}
	if x.options.wants(s.Player, x.options.RPC, x.at.At) {
		*n++
		*bytes += uint64(b.Size)
	}
	take(x, b.Body)
}

func (p *player) message(x *inspection, b *record.Message) {
	if b.Sent {
		p.session.SentMessages++
		return
	}
	p.session.ReceivedMessages++
	p.came(x, b.Body)
}

// came records a received message, whose results follow.
func (p *player) came(x *inspection, body []byte) {
	p.finish(x)
	p.waiting = &carried{at: x.at, payloads: payloads(body)}
	p.taken = carriedSize + payloadSize*len(p.waiting.payloads) + len(body)
	x.limits.keep(p.taken)
	if x.asked != nil && x.at.Number == x.options.Explain {
		p.waiting.explain = x.asked
	}
}

// payloads returns the payloads in a client's message. They share the message's memory, so that
// their offsets follow from their capacities.
func payloads(b []byte) (all []payload) {
	t, body, err := message.Split(message.SkipDownAcks(b))
	if err != nil {
		return nil
	}
	switch t {
	case message.Frame:
		return []payload{{b: bytes.Clone(body), offset: cap(b) - cap(body)}}
	case message.Bundle:
		for f := message.ParseBundle(body); f.Left() > 0; {
			frame, _, err := f.Next()
			if err != nil {
				return all
			}
			all = append(all, payload{b: bytes.Clone(frame), offset: cap(b) - cap(frame)})
		}
	default:
	}
	return all
}

// next removes the next pending payload. It returns false if records were lost.
func (p *player) next() (payload, bool) {
	if p.waiting == nil || len(p.waiting.payloads) == 0 {
		return payload{}, false
	}
	next := p.waiting.payloads[0]
	p.waiting.payloads = p.waiting.payloads[1:]
	return next, true
}

func (p *player) finish(x *inspection) {
	if p.waiting != nil && p.waiting.explain != nil {
		for _, left := range p.waiting.payloads {
			p.waiting.explain.header(nil, left)
			p.waiting.explain.note("the server's result is not in the file")
		}
		x.done = true
	}
	p.forget(x)
}

func (p *player) forget(x *inspection) {
	x.limits.Return(p.taken)
	p.waiting, p.taken = nil, 0
}

// sent records the acks in a sent message.
func (p *player) sent(x *inspection, b []byte) {
	t, rest, err := message.Split(b)
	if err == nil && (t == message.WithAcks || t == message.WithSlack) {
		rest, _, err = message.ParseWithAcks(rest)
		if t--; t == message.WithAcks {
			t = message.Slack
		} else {
			t = message.Acks
		}
	}
	if err == nil && t == message.Slack {
		_, rest, err = message.ParseSlack(nil, rest)
		t = message.Acks
	}
	if err != nil || t != message.Acks {
		return
	}
	for len(rest) > 0 {
		var a rpcdelta.Ack
		if a, rest, err = rpcdelta.ParseAck(rest); err != nil {
			return
		}
		if s := p.streams[int(a.RPC)]; s != nil {
			s.acks = ackState{any: true, at: x.at.At, last: a}
		}
	}
}

// ackState is the last ack sent to the client.
type ackState struct {
	any  bool
	at   time.Duration
	last rpcdelta.Ack
}
