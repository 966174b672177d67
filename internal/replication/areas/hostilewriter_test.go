package areas

import (
	"math/rand/v2"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/steer"
)

// hostileWriter writes messages at random that refer to what a decoder has.
type hostileWriter struct {
	d      *Decoder
	r      *rand.Rand
	dir    bitio.Writer // header and directory
	bodies []byte
}

// message returns the message of the next snapshot, or of one shortly after it.
func (w *hostileWriter) message() []byte {
	d := w.d
	d.n = d.next + w.r.Uint64N(2)
	var known []uint64 // distances of messages
	for n := range d.messages.All() {
		if n < d.n && d.n-n <= maxDistance {
			known = append(known, d.n-n)
		}
	}
	slices.Sort(known)
	if len(known) > 0 && w.r.IntN(8) > 0 {
		base := known[w.r.IntN(len(known))]
		w.dir.Reset(appendHeader(nil, d.n, int(base)))
		for _, m := range d.at(base).members {
			switch w.r.IntN(8) {
			case 0:
				w.dir.WriteBits(memberStale, 3)
			case 1:
				w.dir.WriteBits(memberSame, 2)
			case 2:
				w.dir.WriteBits(memberLeft, 3)
			default:
				w.dir.WriteBits(memberChanged, 1)
				w.part(m.slot, m.set.typ, base)
			}
		}
	} else {
		w.dir.Reset(appendHeader(nil, d.n, 0))
	}
	for w.r.IntN(2) == 0 {
		w.entry(known)
	}
	w.dir.WriteBits(entryEnd, entryBits)
	return append(w.dir.Bytes(), w.bodies...)
}

// entry writes a group without the baseline of the message.
func (w *hostileWriter) entry(known []uint64) {
	slot := uint16(w.r.IntN(1 << (1 + w.r.IntN(11))))
	switch {
	case w.r.IntN(8) == 0: // most likely of a message that the decoder does not have
		w.dir.WriteBits(entryShown, entryBits)
		writeCount(&w.dir, uint64(slot), slotBits)
		distance := 1 + w.r.Uint64N(distancePartial)
		if w.dir.WriteBits(distance, distanceBits); distance != distancePartial {
			w.dir.WriteBits(0, 1)
		}
		return
	case len(known) == 0 || w.r.IntN(2) == 0:
		if w.r.IntN(2) == 0 {
			w.dir.WriteBits(entryKeyframe, entryBits)
			writeCount(&w.dir, uint64(slot), slotBits)
		} else {
			w.dir.WriteBits(entryShown, entryBits)
			writeCount(&w.dir, uint64(slot), slotBits)
			w.dir.WriteBits(0, distanceBits)
		}
		typ := w.r.IntN(len(w.d.types))
		writeCount(&w.dir, uint64(typ), typeBits)
		w.part(slot, w.d.types[typ], 0)
		return
	}
	distance := known[w.r.IntN(len(known))]
	members := w.d.at(distance).members
	if len(members) == 0 {
		return
	}
	m := members[w.r.IntN(len(members))]
	w.dir.WriteBits(entryResumed+w.r.Uint64N(2), entryBits)
	writeCount(&w.dir, uint64(m.slot), slotBits)
	w.dir.WriteBits(distance, distanceBits)
	changed := w.r.Uint64N(2)
	if w.dir.WriteBits(changed, 1); changed == 1 {
		w.part(m.slot, m.set.typ, distance)
	}
}

// part writes a part of a group to the directory, and its coded part to the bodies.
func (w *hostileWriter) part(slot uint16, typ *typeDecoder, distance uint64) {
	before := func(age int) *snapshot.Packed {
		if s := w.d.set(distance+uint64(age), slot); s != nil && s.typ == typ {
			return &s.Packed
		}
		return nil
	}
	var coded []byte
	if base := before(0); distance > 0 && base != nil && w.d.n%checkEvery == 0 {
		h := typ.groups.Check(base)
		coded = []byte{byte(h), byte(h >> 8)}
	}
	coded = append(coded, w.coded(typ, distance, before)...)
	writeCount(&w.dir, uint64(len(coded)), sizeBits)
	w.bodies = append(w.bodies, coded...)
	entered := w.r.IntN(4) == 0
	if !entered {
		w.dir.WriteBits(0, 1)
		return
	}
	w.dir.WriteBits(1, 1)
	n := w.r.IntN(4)
	w.bodies = append(w.bodies, byte(n))
	for range n {
		one := w.coded(typ, 0, nil)
		size := len(one)<<1 | w.r.IntN(2)
		w.bodies = append(w.bodies, byte(size&127|128), byte(size>>7))
		if size&1 == 1 {
			id := w.r.IntN(40)
			w.bodies = append(w.bodies, byte(id), byte(id>>8))
		}
		w.bodies = append(w.bodies, one...)
	}
}

func (w *hostileWriter) coded(typ *typeDecoder, distance uint64, before func(int) *snapshot.Packed) []byte {
	return steer.Message(w.r, nil, func([]byte) { _ = typ.groups.Decode(typ.group, nil, int(distance), before) })
}
