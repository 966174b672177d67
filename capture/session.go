package capture

import (
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// Session is the part of one session in a file. Its methods are safe for concurrent use; those that have a time take
// that of the record from it.
type Session struct {
	w      *Writer
	player uint64
}

// Open begins the part of a session; o's Player is set here.
func (w *Writer) Open(o Opened) *Session {
	w.mu.Lock()
	w.players++
	o.Player = w.players
	w.mu.Unlock()
	w.put(time.Now(), &o)
	return &Session{w: w, player: o.Player}
}

// Closed ends it.
func (s *Session) Closed(cause string) { s.w.put(time.Now(), &Closed{Player: s.player, Cause: cause}) }

// Bound notes that an RPC is bound; b's Player, Schema and Prior are set here. p is nil where the codec has none.
func (s *Session) Bound(b Bound, rpcSchema *schema.Schema, p *rpcdelta.Prior) {
	now := time.Now()
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	id, known := w.schemas[rpcSchema]
	if !known {
		id = uint64(len(w.schemas)) + 1
		json, _ := rpcSchema.AppendJSON(nil) // a schema that was compiled has numbers and texts alone
		w.put(now, &Schema{ID: id, JSON: json})
		w.schemas[rpcSchema] = id
	}
	if p != nil {
		b.Prior = p.Hash()
		if b.Prior != rpcdelta.GenericPrior().Hash() && !w.priors[b.Prior] {
			w.put(now, &Prior{Hash: b.Prior, File: p.Append(nil)})
			w.priors[b.Prior] = true
		}
	}
	b.Player, b.Schema = s.player, id
	w.put(now, &b)
}

// Datagram notes one of the unreliable channel; d's Player is set here. Its body is copied.
func (s *Session) Datagram(at time.Time, d Datagram) {
	d.Player = s.player
	if b, ok := s.begin(at, d.tag(), len(d.Body)); ok {
		s.commit(d.append(b))
	}
}

// Message notes one of the reliable channel; m's Player is set here. Its body is copied.
func (s *Session) Message(at time.Time, m Message) {
	m.Player = s.player
	if b, ok := s.begin(at, m.tag(), len(m.Body)); ok {
		s.commit(m.append(b))
	}
}

// Decoded notes what came of a payload: frames.
func (s *Session) Decoded(at time.Time, rpc int, frames []rpcdelta.Delivery) {
	newest := &frames[len(frames)-1]
	d := Decoded{Player: s.player, RPC: rpc, Seq: newest.Seq, Frames: len(frames), Kind: newest.Kind, Hash: Hash(frames)}
	if b, ok := s.begin(at, tagDecoded, 0); ok {
		s.commit(d.append(b))
	}
}

// Dropped notes what came of a datagram, a message or a payload: nothing. d's Player is set here.
func (s *Session) Dropped(at time.Time, d Dropped) {
	d.Player = s.player
	if b, ok := s.begin(at, tagDropped, len(d.Reason)); ok {
		s.commit(d.append(b))
	}
}

// Withheld notes that a frame was not given to the game; h's Player is set here.
func (s *Session) Withheld(at time.Time, h Withheld) {
	h.Player = s.player
	if b, ok := s.begin(at, tagWithheld, len(h.Reason)); ok {
		s.commit(h.append(b))
	}
}

// begin begins a record that has so many bytes or letters of variable length, if there is room for it. Then the queue is
// locked until commit takes it.
func (s *Session) begin(at time.Time, t tag, size int) ([]byte, bool) {
	q := &s.w.queue
	q.mu.Lock()
	b, ok := q.begin(at, recordHead+size, q.soft)
	if !ok {
		q.mu.Unlock()
		return nil, false
	}
	return append(b, byte(t)), true
}

func (s *Session) commit(b []byte) {
	s.w.queue.commit(b)
	s.w.queue.mu.Unlock()
}
