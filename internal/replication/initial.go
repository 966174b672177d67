package replication

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/uplink-rpc/uplink/snapshot"
)

// Fill returns the set of the objects that f puts. A nil f puts none.
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

// encodeInitial returns the encoded initial state, at most limit bytes: the payload of the first
// snapshot of a world that was empty. An empty set has no bytes.
func encodeInitial(s *snapshot.Schema, set *snapshot.Set, limit int) ([]byte, error) {
	if set.Len() == 0 {
		return nil, nil
	}
	w := snapshot.NewWorld(s, nil)
	w.Begin().CopyFrom(set)
	out, _, err := snapshot.NewEncoder(s, w).Append(nil, limit)
	return out, err
}

// parseInitial decodes what encodeInitial returned.
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
