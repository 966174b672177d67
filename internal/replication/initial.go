package replication

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Fill returns a set of the objects that f puts. If f is nil, the set is empty.
func Fill[T any](t *snapshot.Type[T], f func(put func(id uint16, generation uint8, v *T) error) error) (*snapshot.Set, error) {
	set := t.Schema().NewSet()
	if f == nil {
		return set, nil
	}
	err := f(func(id uint16, generation uint8, v *T) error {
		return t.Add(set, snapshot.Object{ID: id, Generation: generation}, v)
	})
	return set, err
}

// Hash returns FNV-1a, 64 bits, over the id (2 bytes), generation and components (4 bytes each) of
// each object, low byte first. The hash of an empty set is 0.
func Hash(set *snapshot.Set) uint64 {
	if set.Len() == 0 {
		return 0
	}
	h := fnv.New64a()
	var b []byte
	for i := range set.Len() {
		o := set.Object(i)
		b = append(binary.LittleEndian.AppendUint16(b[:0], o.ID), o.Generation)
		for _, v := range set.Row(i) {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		h.Write(b)
	}
	return h.Sum64()
}

// encodeInitial returns the encoding of an initial state, at most limit bytes: the payload of the
// first snapshot of an empty world with these objects. The encoding of an empty set is nil.
func encodeInitial(s *snapshot.Schema, set *snapshot.Set, limit int) ([]byte, error) {
	if set.Len() == 0 {
		return nil, nil
	}
	w := snapshot.NewHistory(s, nil)
	w.Begin().CopyFrom(set)
	out, _, err := new(snapshot.Encoder).Append(nil, w, snapshot.Baseline{Empty: true}, limit)
	return out, err
}

func parseInitial(s *snapshot.Schema, b []byte) (*snapshot.Set, error) {
	set := s.NewSet()
	if len(b) == 0 {
		return set, nil
	}
	_, decoded, err := snapshot.NewDecoder(s, nil).Decode(b)
	if err != nil {
		return nil, fmt.Errorf("initial state: %w", err)
	}
	set.CopyFrom(decoded)
	return set, nil
}

// maxUnacked is the number of unacked segments of the reliable channel from which on no piece of an
// initial state is sent. It is a quarter of the channel's capacity. The rest is for the game's own
// messages.
const maxUnacked = 64

// initialInterval is the minimum mean time between two transfers of the initial state to a client
// that resubscribes repeatedly. The second transfer does not wait.
const initialInterval = 10 * time.Second

// SendQueue sends initial states in pieces. Its methods are for one goroutine at a time. The zero
// value is ready.
type SendQueue struct {
	replicas []*Replica
	piece    []byte // buffer for one piece
}

// add adds a replica whose client requests the initial state.
func (q *SendQueue) add(s *Replica) {
	s.mu.Lock()
	requested := s.phase == offered
	if requested {
		s.phase = initial
	}
	s.mu.Unlock()
	if requested && !s.queued { // an earlier request may have queued it
		s.queued = true
		q.replicas = append(q.replicas, s)
	}
}

// Send sends pieces while the reliable channel has room and the rate limit permits. since is a
// monotonic time since any fixed moment.
func (q *SendQueue) Send(since time.Duration) {
	q.replicas = slices.DeleteFunc(q.replicas, func(s *Replica) bool {
		s.queued = !s.sendInitialState(&q.piece, since)
		return !s.queued
	})
}
