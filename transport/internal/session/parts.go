package session

import (
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// maxAssembled is the maximum number of incomplete bodies. It bounds the memory that a peer can
// take to 24 KB, and suffices unless parts of more bodies arrive out of order.
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
	wire     int // total size of their datagrams in bytes
}

// partsOf returns the number of parts of a body of n bytes in datagrams of at most datagram bytes.
func (s *Session) partsOf(n, datagram int) int {
	room := datagram - s.around(wire.PartKind) - wire.PartSize
	return (n + room - 1) / room
}

// sendParts sends a body of kind k in parts of about the same size, whose datagrams have at most
// datagram bytes.
func (s *Session) sendParts(now time.Time, k wire.Kind, b []byte, datagram int) {
	p := wire.Part{Reliable: k == wire.ReliableKind, Count: s.partsOf(len(b), datagram)}
	for p.Index = range p.Count {
		end := len(b) * (p.Index + 1) / p.Count
		var header [wire.PartSize]byte
		s.pathSize.noteWhole(s.at(now), s.around(wire.PartKind)+wire.PartSize+end-p.Offset)
		s.sendKind(s.remote, wire.PartKind, wire.AppendPart(header[:0], p), b[p.Offset:end])
		p.Offset = end
	}
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

// add adds a part: the body of a datagram with a packet number and a size in bytes. If the part
// completes a body, add returns the body, which is valid until the next call; otherwise it returns
// nil. A part that is invalid or contradicts an earlier part is malformed.
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

// receivePart handles a part: the body of a datagram with a packet number and a size in bytes. It
// returns the payload that the part completes, or nil.
func (s *Session) receivePart(now time.Time, number uint64, size int, part []byte) ([]byte, Verdict) {
	s.heartbeat.busy = true
	if s.parts == nil {
		s.parts = new(assembly)
	}
	s.parts.used = true
	p, err := s.parts.add(number, size, part)
	switch {
	case err != nil:
		return nil, Malformed
	case p == nil:
		return nil, Accepted
	case p.reliable:
		return nil, s.receiveSegments(now, p.body)
	case s.window.Behind(p.first) >= maxReordering:
		return nil, Late
	}
	s.number, s.size = p.first, uint16(p.wire)
	return p.body, Payload
}
