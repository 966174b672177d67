package replication

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

var errUnknown = errors.New("ds: a message of no stream")

// Streams are the replication streams of one player, by number. The methods are safe for concurrent
// use. A nil Streams has no streams.
type Streams struct {
	player Player
	ackHz  atomic.Int64 // permitted ack rate, in acks per 1,000 s

	mu   sync.Mutex
	list [MaxStreams]*Stream
	next int // number of the next stream, since late messages may refer to the lowest free number
}

// NewStreams returns the streams of a player.
func NewStreams(p Player) *Streams { return &Streams{player: p} }

// AckHz returns the number of acks per second that the client may send.
func (all *Streams) AckHz() float64 {
	if all == nil {
		return 0
	}
	return float64(all.ackHz.Load()) / 1000
}

// offer offers a world to the player.
func (all *Streams) offer(h *hub, m *mode, snd sender) (*Stream, error) {
	o, p := m.offer, all.player
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := h.streamOf(p); s != nil {
		if codec := s.mode.offer.Codec; codec != o.Codec {
			return nil, fmt.Errorf("ds: offer %s to player %d: it is offered by codec %q already: Stop that before %q", o.Name, p.ID(), codec, o.Codec)
		}
		return s, nil
	}
	n, ok := all.free()
	if !ok {
		return nil, fmt.Errorf("ds: offer %s to player %d: it has %d worlds already", o.Name, p.ID(), MaxStreams)
	}
	o.Number = uint8(n)
	b, err := o.Append(nil)
	if err == nil {
		err = p.SendReliable(b)
	}
	if err != nil {
		return nil, fmt.Errorf("ds: offer %s to player %d: %w", o.Name, p.ID(), err)
	}
	s := &Stream{player: p, number: o.Number, mode: m, hub: h, ackHz: &all.ackHz, sender: snd}
	s.aead = p.Overhead() - transport.IPSize - transport.HeaderSize
	all.list[n], all.next = s, n+1
	h.add(s)
	return s, nil
}

// free returns a number that is not in use.
func (all *Streams) free() (int, bool) {
	for i := range all.list {
		n := (all.next + i) % len(all.list)
		if s := all.list[n]; s == nil || s.isClosed() {
			return n, true
		}
	}
	return 0, false
}

func (all *Streams) get(n uint8) *Stream {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.list[n]
}

// Close closes all streams. The player's session must have ended, so that no offer can follow.
func (all *Streams) Close() {
	if all == nil {
		return
	}
	all.mu.Lock()
	list := all.list
	all.mu.Unlock()
	for _, s := range list {
		if s != nil {
			s.close()
		}
	}
}

// HandleReply handles the client's reply to an offer. If it requests the initial state, q sends it.
// An error means that no client sends the reply.
func (all *Streams) HandleReply(b []byte, q *SendQueue, now time.Time) error {
	n, answer, err := parseReply(b)
	if err != nil {
		return err
	}
	s := all.get(n)
	if s == nil {
		return errUnknown
	}
	switch answer {
	case Refused:
		s.pause()
	case Request:
		q.add(s)
	case Ready:
		s.subscribe(now)
	default: // parseReply accepts no other answer
	}
	return nil
}

// HandleAck handles an ack of a stream's messages. The error is ErrInvalidAck or another one if no
// client sends the ack.
func (all *Streams) HandleAck(b []byte, now time.Time) error {
	n, ack, err := parseNumber(b)
	if err != nil {
		return err
	}
	s := all.get(n)
	if s == nil || len(ack) > maxAck {
		return errUnknown
	}
	return s.handleAck(ack, now)
}
