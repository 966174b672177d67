package replication

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
)

// Replicas contains the replication streams of one player, by number. The methods are safe for
// concurrent use. A nil Replicas is empty.
type Replicas struct {
	player Player
	ackHz  atomic.Int64 // permitted ack rate, in acks per 1,000 s

	mu   sync.Mutex
	list [MaxReplicas]*Replica
	// next is the number at which the search for a free number begins. Numbers are reused as late
	// as possible, because late messages may refer to old streams.
	next int
}

// NewReplicas returns the replicas of a player.
func NewReplicas(p Player) *Replicas { return &Replicas{player: p} }

// Stats returns the counts of the replicas that are not closed, in the order of their numbers.
func (all *Replicas) Stats() (out []Stats) {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	list := all.list
	all.mu.Unlock()
	for _, s := range list {
		if s != nil && !s.is(stopped) {
			out = append(out, s.Stats())
		}
	}
	return out
}

// Find returns the number of the replica of a world to which the client has subscribed. If world is
// empty, the client must have subscribed to exactly one world.
func (all *Replicas) Find(world string) (number uint8, err error) {
	var found []*Replica
	if all != nil {
		all.mu.Lock()
		for _, s := range all.list {
			if s != nil && s.is(ready) && (world == "" || s.mode.offer.Name == world) {
				found = append(found, s)
			}
		}
		all.mu.Unlock()
	}
	switch {
	case len(found) == 1:
		return found[0].number, nil
	case world != "":
		return 0, fmt.Errorf("the client has not subscribed to a world %s", world)
	}
	return 0, fmt.Errorf("the client has subscribed to %d worlds: name the one of the tick", len(found))
}

// AckHz returns the number of acks per second that the client may send.
func (all *Replicas) AckHz() float64 {
	if all == nil {
		return 0
	}
	return float64(all.ackHz.Load()) / 1000
}

func (all *Replicas) offer(h *hub, m *mode, snd sender) (*Replica, error) {
	o, p := m.offer, all.player
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := h.replicaOf(p); s != nil {
		if codec := s.mode.offer.Codec; codec != o.Codec {
			return nil, fmt.Errorf("replication: offer %s to player %d: it is offered by codec %q already: Stop that before %q", o.Name, p.ID(), codec, o.Codec)
		}
		return s, nil
	}
	n, ok := all.free()
	if !ok {
		return nil, fmt.Errorf("replication: offer %s to player %d: it has %d worlds already", o.Name, p.ID(), MaxReplicas)
	}
	o.Number, o.Processed = uint8(n), len(p.AppendProcessed(nil)) > 0
	b, err := o.Append(nil)
	if err == nil {
		err = p.SendReliable(b)
	}
	if err != nil {
		return nil, fmt.Errorf("replication: offer %s to player %d: %w", o.Name, p.ID(), err)
	}
	s := &Replica{player: p, number: o.Number, mode: m, hub: h, ackHz: &all.ackHz, tells: o.Processed, sender: snd}
	s.aead = p.Overhead() - endpoint.IPSize - endpoint.HeaderSize
	all.list[n], all.next = s, n+1
	h.add(s)
	return s, nil
}

func (all *Replicas) free() (int, bool) {
	for i := range all.list {
		n := (all.next + i) % len(all.list)
		if s := all.list[n]; s == nil || s.is(stopped) {
			return n, true
		}
	}
	return 0, false
}

// find parses the number of a replica and returns the replica and the rest of b.
func (all *Replicas) find(b []byte) (*Replica, []byte, error) {
	n, rest, err := parseNumber(b)
	if err != nil || all == nil {
		return nil, nil, cmp.Or(err, errUnknown)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.list[n] == nil {
		return nil, nil, errUnknown
	}
	return all.list[n], rest, nil
}

// Close closes all replicas. The player's session must have ended, so that no offer can follow.
func (all *Replicas) Close() {
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

// HandleReply handles the client's reply to an offer. If the client requests the initial state, q
// sends it. An error means that the reply is invalid.
func (all *Replicas) HandleReply(b []byte, q *SendQueue, now time.Time) error {
	_, answer, _, err := parseReply(b)
	if err != nil {
		return err
	}
	s, _, err := all.find(b)
	if err != nil {
		return err
	}
	switch answer {
	case Request:
		q.add(s)
	case Ready:
		s.subscribe(now)
	default:
		s.pause()
	}
	return nil
}

// Explained returns the explanation in a reply and the name of its world. why is nil if the reply
// explains nothing. offered is false if the reply is about a world that was not offered.
// HandleReply returns an error for such a reply.
func (all *Replicas) Explained(b []byte) (world string, why *message.BindAnswer, offered bool, err error) {
	number, _, why, err := parseReply(b)
	switch {
	case err != nil:
		return "", nil, false, err
	case number == NoOffer:
		return why.Theirs, why, false, nil
	case why == nil:
		return "", nil, true, nil
	}
	s, _, err := all.find(b)
	if err != nil {
		return "", nil, true, err
	}
	return s.mode.offer.Name, why, true, nil
}

// Offered returns the names of the worlds that are offered to the player.
func (all *Replicas) Offered() (names []string) {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if s != nil && !s.is(stopped) {
			names = append(names, s.mode.offer.Name)
		}
	}
	return names
}

// HandleAck handles an ack of a replica's messages. It returns ErrInvalidAck or another error if
// the ack is invalid.
func (all *Replicas) HandleAck(b []byte, now time.Time) error {
	s, ack, err := all.find(b)
	if err != nil {
		return err
	}
	return s.handleAck(ack, now)
}

var errUnknown = errors.New("replication: a message of no stream")
