package capture

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Session writes the records of one session. Each method sets the Player of its record. They are
// safe for concurrent use. The methods with a time copy byte slices and do not allocate.
type Session struct {
	w      *Writer
	player uint64
}

// Open records the start of a session.
func (w *Writer) Open(o record.Opened) *Session {
	w.mu.Lock()
	w.players++
	o.Player = w.players
	w.mu.Unlock()
	w.put(time.Now(), &o)
	return &Session{w: w, player: o.Player}
}

// Closed records the end of the session.
func (s *Session) Closed(cause string) {
	s.w.put(time.Now(), &record.Closed{Player: s.player, Cause: cause})
}

// Bound records a binding of the RPC that rpcSchema describes. It also records the schema and the
// prior if the capture does not contain them yet. It sets the Schema and Prior of b. p is nil for a
// codec without prior.
func (s *Session) Bound(b record.Bound, rpcSchema *schema.Schema, p *prior.Prior) {
	now := time.Now()
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	id, known := w.schemas[rpcSchema]
	if !known {
		id = uint64(len(w.schemas)) + 1
		json, _ := rpcSchema.AppendJSON(nil) // a compiled schema has no values that JSON cannot express
		w.put(now, &record.Schema{ID: id, JSON: json})
		w.schemas[rpcSchema] = id
	}
	if p != nil {
		b.Prior = p.Hash()
		if b.Prior != prior.Generic().Hash() && !w.priors[b.Prior] {
			w.put(now, &record.Prior{Hash: b.Prior, File: p.Append(nil)})
			w.priors[b.Prior] = true
		}
	}
	b.Player, b.Schema = s.player, id
	w.put(now, &b)
}

// Datagram records a datagram of the unreliable channel.
func (s *Session) Datagram(at time.Time, d record.Datagram) {
	d.Player = s.player
	if b, ok := s.begin(at, len(d.Body)); ok {
		s.commit(d.Append(b))
	}
}

// Message records a message of the reliable channel.
func (s *Session) Message(at time.Time, m record.Message) {
	m.Player = s.player
	if b, ok := s.begin(at, len(m.Body)); ok {
		s.commit(m.Append(b))
	}
}

// Decoded records the frames of a payload.
func (s *Session) Decoded(at time.Time, rpc int, frames []rpcdelta.Delivery) {
	newest := &frames[len(frames)-1]
	d := record.Decoded{Player: s.player, RPC: rpc, Seq: newest.Seq, Frames: len(frames), Kind: newest.Kind, Hash: Hash(frames)}
	if b, ok := s.begin(at, 0); ok {
		s.commit(d.Append(b))
	}
}

// Dropped records that a datagram, a message or a payload was dropped.
func (s *Session) Dropped(at time.Time, d record.Dropped) {
	d.Player = s.player
	if b, ok := s.begin(at, len(d.Reason)); ok {
		s.commit(d.Append(b))
	}
}

// Withheld records that a frame was not delivered to the game.
func (s *Session) Withheld(at time.Time, h record.Withheld) {
	h.Player = s.player
	if b, ok := s.begin(at, len(h.Reason)); ok {
		s.commit(h.Append(b))
	}
}

// begin starts a queue entry with size bytes of variable length, and locks the queue until commit.
// It reports false, without the lock, if the queue is full.
func (s *Session) begin(at time.Time, size int) ([]byte, bool) {
	q := &s.w.queue
	q.mu.Lock()
	b, ok := q.begin(at, recordOverhead+size, q.soft)
	if !ok {
		q.mu.Unlock()
	}
	return b, ok
}

func (s *Session) commit(b []byte) {
	s.w.queue.commit(b)
	s.w.queue.mu.Unlock()
}

// Hash returns a hash of the frames of a payload: their order, kinds, lateness, components and byte
// strings. It does not depend on absolute sequence numbers.
func Hash(frames []rpcdelta.Delivery) uint32 {
	h := fnv.Offset
	for i := range frames {
		d := &frames[i]
		h = h.Add(frames[len(frames)-1].Seq - d.Seq).Add(uint64(d.Kind))
		if d.Late {
			h = h.Add(1)
		}
		for _, v := range d.Frame.Ints {
			h = h.Add(uint64(uint32(v)))
		}
		for _, b := range d.Frame.Bytes {
			h = h.Add(uint64(len(b))).AddBytes(b)
		}
	}
	return uint32(h ^ h>>32)
}
