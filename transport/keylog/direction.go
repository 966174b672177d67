package keylog

import (
	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// session is one whose secrets are known.
type session struct {
	id                 uint64
	toServer, toClient direction
	opened             bool // something of it
}

func newSession(s *Session) *session {
	out := &session{id: s.ID}
	out.toServer = direction{session: out, toServer: true, secret: s.ToServer, archive: seal.NewArchive(s.Suite, s.ToServer)}
	out.toClient = direction{session: out, secret: s.ToClient, archive: seal.NewArchive(s.Suite, s.ToClient)}
	return out
}

// direction is the datagrams of a session that go one way.
type direction struct {
	session  *session
	toServer bool
	secret   [32]byte // of the first epoch
	archive  *seal.Archive
	next     uint64 // the number after the newest one that was opened; 0 if none was
}

const (
	numbers = 1 << wire.NumberBits
	// ahead is how many turns of the number on the wire a datagram may be ahead of the newest one, where the
	// recording has a gap or begins late: four epochs, 19 hours of 60 datagrams a second.
	ahead = 4 << (seal.EpochBits - wire.NumberBits)
)

// forgetKeys forgets the keys that were made for a try in vain, if nothing was opened yet: of
// many sessions they take much
// memory.
func (d *direction) forgetKeys() {
	if d.next == 0 {
		d.archive = seal.NewArchive(d.archive.Suite(), d.secret)
	}
}

// open opens a datagram under the number that is nearest to the newest one.
func (d *direction) open(dst []byte, h wire.Header, b []byte) ([]byte, bool) {
	return d.openAs(dst, h, b, d.nearest(h.Number))
}

// search opens a datagram under a number that is farther ahead, of which it tries at most budget, and takes off
// what it tried.
func (d *direction) search(dst []byte, h wire.Header, b []byte, budget *int) ([]byte, bool) {
	number := d.nearest(h.Number)
	for range ahead {
		number += numbers
		if *budget <= 0 {
			break
		}
		*budget--
		if out, ok := d.openAs(dst, h, b, number); ok {
			return out, true
		}
	}
	return dst, false
}

// nearest is the number with these low bits that is nearest to the next one.
func (d *direction) nearest(low uint32) uint64 {
	distance := (uint64(low) - d.next) % numbers // forward
	number := d.next + distance
	if distance >= numbers/2 && number >= numbers {
		number -= numbers
	}
	return number
}

func (d *direction) openAs(dst []byte, h wire.Header, b []byte, number uint64) ([]byte, bool) {
	header := b[:h.Size()]
	out := append(d.appendRecordHeader(dst, number), header...)
	out, ok := d.archive.Open(out, header, b[h.Size():], number)
	if !ok {
		return dst, false
	}
	d.next = max(d.next, number+1)
	d.session.opened = true
	return out, true
}
