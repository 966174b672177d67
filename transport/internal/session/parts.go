package session

import (
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// maxAssembled is the maximum number of bodies of which some parts have arrived. More are not
// needed unless datagrams arrive out of order by more than that, and they limit the memory that a
// peer can take to 24 KB.
const maxAssembled = 16

// assembly collects bodies that arrive in parts. The memory is used again.
type assembly struct {
	bodies []partial
	used   bool // since the last heartbeat was sent
}

// partial is a body of which some parts have arrived.
type partial struct {
	first    uint64 // packet number of the first part
	reliable bool
	count    int   // of parts; 0: the entry is free
	arrived  uint8 // bit i: part i
	body     []byte
	bytes    int // that have arrived
	wire     int // size of their datagrams
}

// partsOf returns the number of parts of a body of n bytes in datagrams of a size.
func (s *Session) partsOf(n, datagram int) int {
	room := datagram - s.around(wire.PartKind) - wire.PartSize
	return (n + room - 1) / room
}

// sendParts sends a body of kind k in datagrams of at most a size, which have about the same size.
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

// find returns the entry of a body, which may be new, or nil if newer bodies take all entries.
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

// add adds a part, the body of the datagram with a number and a size. It returns the whole body if
// that is complete, valid until the next call, or nil. Invalid parts, and those that contradict
// others, are malformed.
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

// receivePart handles a part, the body of the datagram with a number and a size. It returns the
// payload if it completes one.
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
