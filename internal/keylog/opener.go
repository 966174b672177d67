package keylog

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// Verdict is the result of [Opener.Open] for a datagram.
type Verdict uint8

// The verdicts.
const (
	// Opened is a datagram that was decrypted.
	Opened Verdict = iota
	// Plain is an unencrypted datagram: one of a handshake, or one that was decrypted before.
	Plain
	// NoSession is a datagram of a session without known keys, judging by its connection id or
	// addresses.
	NoSession
	// Damaged is a datagram of a session with known keys that is not authentic: it was altered,
	// truncated or forged, or too many earlier datagrams of the session are missing to determine
	// its packet number.
	Damaged
	// Foreign is not a datagram of this protocol.
	Foreign
)

const (
	perFlow  = 4       // sessions per pair of addresses
	maxTries = 4       // datagrams per pair of addresses that are tried with all sessions
	maxTried = 1 << 16 // pairs of addresses whose datagrams are tried
	maxFlows = 1 << 16 // approximate number of pairs of addresses with sessions
	// maxSearch is the maximum number of failed attempts with keys and numbers, in total.
	maxSearch = 1 << 22
)

// flow is the datagrams from one address to another.
type flow struct{ from, to netip.AddrPort }

// Opener decrypts recorded datagrams, in the order of the recording. It finds a datagram's session
// by the connection id, or by the addresses of earlier datagrams; if the recording starts too late
// for that, it tries all sessions, within bounds, at the next heartbeat. Sessions may migrate. It
// is not safe for concurrent use.
type Opener struct {
	sessions map[uint64]*session
	all      []*session
	// flows contains the sessions of pairs of addresses, the most recent first. When it is half
	// full, it becomes older, and the entries of the previous older that were not used since are
	// discarded.
	flows, older map[flow][]*direction
	tried        map[flow]int
	budget       int
}

// NewOpener returns an opener for these sessions.
func NewOpener(sessions []Session) *Opener {
	o := &Opener{
		sessions: map[uint64]*session{}, flows: map[flow][]*direction{}, tried: map[flow]int{}, budget: maxSearch,
	}
	for i := range sessions {
		s := newSession(&sessions[i])
		o.sessions[s.id] = s
		o.all = append(o.all, s)
	}
	return o
}

// Sessions returns the number of sessions with decrypted datagrams.
func (o *Opener) Sessions() (n int) {
	for _, s := range o.all {
		if s.opened {
			n++
		}
	}
	return n
}

// Open opens a datagram that went from one address to another. If the verdict is [Opened] the
// datagram is appended to dst as a record: [RecordHeader] bytes, then the datagram with its header
// as it was sent and its body decrypted (docs/wireshark.md). With any other verdict dst is returned
// as it was. dst must not overlap with b, which is not written to.
func (o *Opener) Open(dst []byte, from, to netip.AddrPort, b []byte) ([]byte, Verdict) {
	h, err := wire.ParseHeader(b)
	switch {
	case err == nil && h.Long:
		return o.openLong(dst, flow{from, to}, h, b)
	case err == nil:
		return o.openShort(dst, flow{from, to}, h, b)
	}
	if _, err := wire.ParseType(b); err == nil || isRecord(b) {
		return dst, Plain
	}
	return dst, Foreign
}

func (o *Opener) openLong(dst []byte, f flow, h wire.Header, b []byte) ([]byte, Verdict) {
	s := o.sessions[h.ID]
	if s == nil {
		return dst, NoSession
	}
	out, ok := o.openBy(&s.toServer, dst, h, b)
	if !ok {
		return dst, Damaged
	}
	o.learn(f, &s.toServer)
	return out, Opened
}

func (o *Opener) openShort(dst []byte, f flow, h wire.Header, b []byte) ([]byte, Verdict) {
	known := o.known(f)
	for _, d := range known {
		if out, ok := d.open(dst, h, b); ok {
			return out, Opened
		}
	}
	for _, d := range known {
		if out, ok := d.search(dst, h, b, &o.budget); ok {
			return out, Opened
		}
	}
	if out, ok := o.try(dst, f, h, b); ok {
		return out, Opened
	}
	if known != nil {
		return dst, Damaged
	}
	return dst, NoSession
}

func (o *Opener) openBy(d *direction, dst []byte, h wire.Header, b []byte) ([]byte, bool) {
	if out, ok := d.open(dst, h, b); ok {
		return out, true
	}
	return d.search(dst, h, b, &o.budget)
}

// try tries all sessions for a datagram of unknown addresses. A data header has too few bits of the
// number; the addresses are known from the next heartbeat.
func (o *Opener) try(dst []byte, f flow, h wire.Header, b []byte) ([]byte, bool) {
	if h.Form() == wire.DataForm {
		return dst, false
	}
	tries := o.tried[f]
	if tries == maxTries || tries == 0 && len(o.tried) == maxTried {
		return dst, false
	}
	o.tried[f] = tries + 1
	for _, s := range o.all {
		for _, d := range []*direction{&s.toServer, &s.toClient} {
			if d.archive.Suite() == seal.None { // accepts any datagram
				continue
			}
			if o.budget--; o.budget < 0 {
				return dst, false
			}
			if out, ok := o.openBy(d, dst, h, b); ok {
				o.learn(f, d)
				return out, true
			}
			d.forgetKeys()
		}
	}
	return dst, false
}

// learn records the session of a pair of addresses, in both directions.
func (o *Opener) learn(f flow, d *direction) {
	back := &d.session.toServer
	if d.toServer {
		back = &d.session.toClient
	}
	o.note(f, d)
	o.note(flow{f.to, f.from}, back)
}

// known returns the sessions of a pair of addresses.
func (o *Opener) known(f flow) []*direction {
	if known := o.flows[f]; known != nil {
		return known
	}
	known := o.older[f]
	if known != nil {
		o.set(f, known)
	}
	return known
}

// set sets the sessions of a pair of addresses.
func (o *Opener) set(f flow, known []*direction) {
	if _, ok := o.flows[f]; !ok && len(o.flows) == maxFlows/2 {
		o.flows, o.older = map[flow][]*direction{}, o.flows
	}
	o.flows[f] = known
}

func (o *Opener) note(f flow, d *direction) {
	known := o.known(f)
	if len(known) > 0 && known[0] == d {
		return
	}
	known = slices.DeleteFunc(known, func(k *direction) bool { return k == d })
	known = slices.Insert(known, 0, d)
	o.set(f, known[:min(len(known), perFlow)])
}

// session is a session with known secrets.
type session struct {
	id                 uint64
	toServer, toClient direction
	opened             bool // a datagram of the session was decrypted
}

func newSession(s *Session) *session {
	out := &session{id: s.ID}
	out.toServer = direction{session: out, toServer: true, secret: s.ToServer, archive: seal.NewArchive(s.Suite, s.ToServer)}
	out.toClient = direction{session: out, secret: s.ToClient, archive: seal.NewArchive(s.Suite, s.ToClient)}
	return out
}

// direction is one direction of a session.
type direction struct {
	session  *session
	toServer bool
	secret   [32]byte // secret of the first epoch
	archive  *seal.Archive
	next     uint64 // number after the newest decrypted datagram, or 0
}

const (
	// ahead is the maximum number of wraps of the number on the wire between the newest datagram
	// and the next one, after a gap in the recording or a late start: four epochs, 19 hours of 60
	// datagrams per second.
	ahead = 4 << (seal.EpochBits - wire.NumberBits)
)

// forgetKeys discards the keys of a failed attempt if nothing was decrypted yet: they would need
// much memory for many sessions.
func (d *direction) forgetKeys() {
	if d.next == 0 {
		d.archive = seal.NewArchive(d.archive.Suite(), d.secret)
	}
}

// open decrypts a datagram with the number nearest to the newest one.
func (d *direction) open(dst []byte, h wire.Header, b []byte) ([]byte, bool) {
	return d.openAs(dst, h, b, d.nearest(h))
}

// search decrypts a datagram with a number farther ahead. It tries at most budget numbers, and
// subtracts the number of attempts. For a data header it tries none: after a gap, datagrams are
// opened again from the next heartbeat on, which contains more bits of its number.
func (d *direction) search(dst []byte, h wire.Header, b []byte, budget *int) ([]byte, bool) {
	if h.Form() == wire.DataForm {
		return dst, false
	}
	number := d.nearest(h)
	for range ahead {
		number += 1 << h.NumberBits()
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

// nearest returns the number with the low bits in a header that is nearest to the next one.
func (d *direction) nearest(h wire.Header) uint64 {
	numbers := uint64(1) << h.NumberBits()
	distance := (uint64(h.Number) - d.next) % numbers // distance in the forward direction
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

// A record is a decrypted datagram. No datagram of the protocol has its first byte:
//
//	byte  0xbe, or 0xbf if it was sent to the client
//	3     "upl"
//	u8    suite of the session
//	u64   id of the session
//	u64   complete packet number
//	...   the datagram: header as sent, body decrypted, no tag
//
// Integers are little-endian.
const (
	recordMark     = wire.RecordMark
	recordToClient = 1 << 0
	recordMagic    = "upl"
	// RecordHeader is the size of a record's bytes before the datagram.
	RecordHeader = 1 + len(recordMagic) + 1 + 8 + 8
)

func (d *direction) appendRecordHeader(dst []byte, number uint64) []byte {
	first := recordMark
	if !d.toServer {
		first |= recordToClient
	}
	dst = append(append(dst, first), recordMagic...)
	dst = append(dst, byte(d.archive.Suite()))
	dst = binary.LittleEndian.AppendUint64(dst, d.session.id)
	return binary.LittleEndian.AppendUint64(dst, number)
}

// isRecord reports whether a datagram was decrypted before.
func isRecord(b []byte) bool {
	return len(b) >= RecordHeader && b[0]&^recordToClient == recordMark && string(b[1:4]) == recordMagic && seal.Suite(b[4]).Valid()
}
