package sessions

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
)

// Word returns the word that stands for an error of a decoder in golden sessions.
func Word(err error) string {
	for word, target := range map[string]error{
		"late": snapshot.ErrLate, "missing": snapshot.ErrBaselineMissing, "desync": snapshot.ErrDesync, "malformed": snapshot.ErrMalformed,
	} {
		if errors.Is(err, target) {
			return word
		}
	}
	return "right"
}

// Result returns the result of decoding a message for the line of results: the word for an error,
// or the hash.
func Result(err error, h corpus.Hash) string {
	if err != nil {
		return Word(err) + " "
	}
	return fmt.Sprintf("%016x ", uint64(h))
}

// AddSet adds the objects of a set to the hash of results.
func AddSet(h *corpus.Hash, s *snapshot.Set) {
	h.Add(int32(s.Len()))
	for i := range s.Len() {
		h.Add(int32(s.Object(i).ID), int32(s.Object(i).Generation))
		h.Add(s.Row(i)...)
	}
}
