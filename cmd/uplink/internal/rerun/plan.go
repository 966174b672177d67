// Package rerun plays the sessions of a capture to a dedicated server: the same payloads and
// messages of each client, at the recorded times, over new connections.
package rerun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

// Plan contains the sessions to replay.
type Plan struct {
	sessions []*replayed
	schemas  []*schema.Schema
	priors   []*prior.Prior
	ring     int
	late     bool // value of DeliverLate
	// Skipped counts payloads that cannot be replayed, because their baselines are not in the file
	// or because the server dropped them before decoding.
	Skipped uint64
}

type replayed struct {
	player  uint64
	events  []event
	expect  map[int][]string // expected result of each payload, by RPC number
	streams map[int]*stream
	waiting *carried
}

type event struct {
	at       time.Duration
	bind     *message.BindRequest // request to bind, or
	body     []byte               // message to send; nil ends the session
	reliable bool
}

type stream struct {
	ready   bool // whether payloads can be decoded
	resumed bool // whether it starts at a reset within the stream
	start   uint64
}

// carried is a datagram or message whose payloads have no result yet.
type carried struct {
	at       time.Duration
	reliable bool
	body     []byte
	payloads [][]byte
	next     int
	play     []bool
}

// Load reads the sessions of one player in a capture or, if player is 0, of all. If the file is
// damaged, the plan contains the records before the damage. memory limits the size of the plan in
// bytes; 0 means [budget.Default].
func Load(r io.Reader, player uint64, memory int64) (*Plan, error) {
	in, err := capture.NewReader(r)
	if err != nil {
		return nil, err
	}
	l := &loader{plan: &Plan{}, player: player, sessions: map[uint64]*replayed{}, schemas: map[uint64]*schema.Schema{}, budget: budget.New(memory)}
	err = l.read(in)
	for _, player := range slices.Sorted(maps.Keys(l.sessions)) {
		s := l.sessions[player]
		l.settle(s)
		l.plan.sessions = append(l.plan.sessions, s)
	}
	for _, id := range slices.Sorted(maps.Keys(l.schemas)) {
		l.plan.schemas = append(l.plan.schemas, l.schemas[id])
	}
	return l.plan, err
}

// Sessions returns the number of sessions.
func (p *Plan) Sessions() int { return len(p.sessions) }

// maxSessions is the maximum number of sessions, because each needs a socket.
const maxSessions = 1 << 14

type loader struct {
	plan     *Plan
	player   uint64
	sessions map[uint64]*replayed
	schemas  map[uint64]*schema.Schema
	at       time.Duration
	budget   *budget.Budget
}

// Estimated sizes in bytes. Growing slices temporarily need more than twice their size.
const (
	sessionSize = 2 << 10
	eventSize   = 160
	payloadSize = 96 // size of a payload with its expected result
	bindingSize = 1 << 10
)

func (l *loader) read(in *capture.Reader) error {
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l.at = max(l.at, rec.At) // goroutines of a server may write slightly out of order
		if err := l.take(rec.Body); err != nil {
			return fmt.Errorf("record %d: %w", rec.Number, err)
		}
	}
}

func (l *loader) take(body record.Body) error {
	switch b := body.(type) {
	case *record.Schema:
		s, err := l.budget.Schema(b.JSON)
		if err != nil {
			return err
		}
		l.schemas[b.ID] = s
	case *record.Prior:
		p, err := l.budget.Prior(b.File)
		if err != nil {
			return err
		}
		l.plan.priors = append(l.plan.priors, p)
	case *record.Opened:
		if l.player == 0 || l.player == b.Player {
			if len(l.sessions) == maxSessions {
				return fmt.Errorf("more than %d sessions: choose one", maxSessions)
			}
			if err := l.budget.Take(sessionSize); err != nil {
				return err
			}
			l.sessions[b.Player] = &replayed{player: b.Player, expect: map[int][]string{}, streams: map[int]*stream{}}
		}
	case *record.Lost:
		for _, s := range l.sessions {
			s.waiting = nil
			for _, st := range s.streams {
				st.ready = false
			}
		}
	case *record.Bound:
		return l.bound(b)
	case *record.Closed:
		if s := l.sessions[b.Player]; s != nil {
			l.settle(s)
			s.events = append(s.events, event{at: l.at})
		}
		return l.budget.Take(eventSize)
	case *record.Datagram:
		if s := l.sessions[b.Player]; s != nil && !b.Sent {
			return l.came(s, b.Body, false)
		}
	case *record.Message:
		if s := l.sessions[b.Player]; s != nil && !b.Sent {
			return l.came(s, b.Body, true)
		}
	case *record.Decoded:
		if s := l.sessions[b.Player]; s != nil {
			l.decoded(s, b)
		}
	case *record.Dropped:
		if s := l.sessions[b.Player]; s != nil {
			l.dropped(s, b)
		}
		return l.budget.Take(len(b.Reason))
	}
	return nil
}

func (l *loader) bound(b *record.Bound) error {
	declared := l.schemas[b.Schema]
	if declared == nil {
		return fmt.Errorf("schema %d is not in the file", b.Schema)
	}
	l.plan.ring, l.plan.late = max(l.plan.ring, b.Ring), b.DeliverLate
	if err := l.budget.Take(bindingSize + 8*len(declared.Fields())); err != nil {
		return err
	}
	if s := l.sessions[b.Player]; s != nil {
		l.settle(s)
		s.streams[b.RPC] = &stream{ready: !b.Again}
		s.events = append(s.events, event{at: l.at, bind: &message.BindRequest{
			RPC: uint8(b.RPC), Name: declared.RPC(), Fingerprint: declared.Fingerprint(), Fields: message.FieldHashes(declared), RateHz: b.RateHz,
			Ring: b.PeerRing, Codec: b.Codec.String(), Reliable: b.Reliable, Frames: b.Frames, Prior: b.Prior, PerTick: b.PerTick,
			Batch: b.Batch, Deadline: b.Deadline,
		}})
	}
	return nil
}

// came stores a message until the server's result is known, if the memory suffices. It stores no
// requests to bind, which are created again, and no acks of worlds.
func (l *loader) came(s *replayed, body []byte, reliable bool) error {
	l.settle(s)
	body = message.SkipDownAcks(body)
	t, rest, err := message.Split(body)
	c := &carried{at: l.at, reliable: reliable, body: bytes.Clone(body)}
	switch {
	case err != nil:
		return nil
	case t == message.Message:
	case t == message.Frame:
		c.payloads = [][]byte{c.body}
	case t == message.Bundle:
		for f := message.ParseBundle(rest); f.Left() > 0; {
			payload, _, err := f.Next()
			if err != nil {
				break
			}
			c.payloads = append(c.payloads, bytes.Clone(payload))
		}
	default:
		return nil
	}
	c.play = make([]bool, len(c.payloads))
	s.waiting = c
	return l.budget.Take(eventSize + len(body) + payloadSize*len(c.payloads))
}

// settle adds the pending message to the events, without the skipped payloads.
func (l *loader) settle(s *replayed) {
	c := s.waiting
	s.waiting = nil
	if c == nil {
		return
	}
	var played [][]byte
	for i, p := range c.payloads {
		if c.play[i] {
			played = append(played, p)
		}
	}
	l.plan.Skipped += uint64(len(c.payloads) - len(played))
	if len(c.payloads) > len(played) {
		if len(played) == 0 {
			return
		}
		b := message.NewBundler(transport.MaxPayload)
		for _, p := range played {
			b.Add(p)
		}
		c.body = bytes.Clone(b.Take())
	}
	s.events = append(s.events, event{at: c.at, body: c.body, reliable: c.reliable})
}

// next returns the index of the payload that the server's next result belongs to.
func (s *replayed) next() (int, bool) {
	if s.waiting == nil || s.waiting.next == len(s.waiting.payloads) {
		return 0, false
	}
	s.waiting.next++
	return s.waiting.next - 1, true
}

func (l *loader) decoded(s *replayed, b *record.Decoded) {
	i, ok := s.next()
	st := s.streams[b.RPC]
	switch {
	case st == nil:
	case !ok:
		st.ready = false
	case !st.ready && b.Kind == rpcdelta.Reset && !s.waiting.reliable:
		st.ready, st.resumed, st.start = true, true, b.Seq
		s.play(i, b.RPC, anything) // the original server had received its older frames before
	case st.ready && (!st.resumed || b.Seq >= st.start):
		s.play(i, b.RPC, taken(b.Frames, b.Kind, b.Hash))
	}
}

// play marks payload i of the pending message for replay, with its expected result.
func (s *replayed) play(i, rpc int, expected string) {
	s.waiting.play[i] = true
	s.expect[rpc] = append(s.expect[rpc], expected)
}

func (l *loader) dropped(s *replayed, b *record.Dropped) {
	i, ok := s.next()
	st := s.streams[b.RPC]
	// A server that did not receive the earlier payloads may drop an old one for another reason.
	old := b.Reason == ds.Late.String() || b.Reason == ds.Duplicate.String()
	if ok && b.Decoder && st != nil && st.ready && (!st.resumed || !old) {
		s.play(i, b.RPC, b.Reason)
	}
}

// anything is the expected result where two servers may differ.
const anything = ""

func taken(frames int, kind rpcdelta.FrameKind, hash uint32) string {
	return fmt.Sprintf("%d frames, %v, %08x", frames, kind, hash)
}
