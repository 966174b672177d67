package session

import (
	"slices"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// maxAssembled is the maximum number of incomplete bodies. It bounds the memory that a peer can use
// to 24 KB, and is enough unless the parts of more bodies are interleaved.
const maxAssembled = 16

// assembly collects bodies that arrive in parts. It reuses its memory.
type assembly struct {
	bodies []partial
	used   bool // a part has arrived since the last heartbeat was sent
}

// partial is a body of which some parts have arrived.
type partial struct {
	first    uint64 // packet number of the first part
	reliable bool
	count    int   // number of parts; 0: the entry is free
	arrived  uint8 // bit i: part i has arrived
	body     []byte
	bytes    int // number of bytes that have arrived
	wire     int // total size in bytes of the datagrams of these parts
}

// find returns the entry of the body whose first part has the packet number first. If there is
// none, it uses a free entry or replaces the oldest body, and returns nil if all bodies are newer.
func (a *assembly) find(first uint64, h wire.Part) *partial {
	var free *partial
	for i := range a.bodies {
		switch p := &a.bodies[i]; {
		case p.count != 0 && p.first == first:
			return p
		case free == nil || free.count != 0 && (p.count == 0 || p.first < free.first):
			free = p
		}
	}
	switch {
	case (free == nil || free.count != 0) && len(a.bodies) < maxAssembled:
		a.bodies = append(a.bodies, partial{})
		free = &a.bodies[len(a.bodies)-1]
	case free.count != 0 && free.first > first:
		return nil
	}
	*free = partial{first: first, reliable: h.Reliable, count: h.Count, body: free.body[:0]}
	return free
}

// add adds a part. number and size are the packet number and the size in bytes of its datagram. If
// the part completes a body, add returns the body, which is valid until the next call; otherwise it
// returns nil. A part that is invalid or contradicts an earlier part is malformed.
func (a *assembly) add(number uint64, size int, part []byte) (*partial, error) {
	h, data, err := wire.ParsePart(part)
	if err != nil || number < uint64(h.Index) {
		return nil, wire.ErrMalformed
	}
	p := a.find(number-uint64(h.Index), h)
	if p == nil {
		return nil, nil
	}
	if p.reliable != h.Reliable || p.count != h.Count || p.arrived&(1<<h.Index) != 0 {
		return nil, wire.ErrMalformed
	}
	if end := h.Offset + len(data); end > len(p.body) {
		p.body = slices.Grow(p.body, end-len(p.body))[:end]
	}
	p.bytes += copy(p.body[h.Offset:], data)
	p.arrived |= 1 << h.Index
	p.wire += size
	if p.arrived != 1<<h.Count-1 {
		return nil, nil
	}
	p.count = 0
	if p.bytes != len(p.body) {
		return nil, wire.ErrMalformed
	}
	return p, nil
}
