// Package relay connects servers with a UDP proxy in front of them. Such a proxy has no keys of
// sessions or tokens. It finds the server of a datagram by what clients send in clear: [Route] and
// [ServerID]. examples/proxy is a complete one.
//
// Between proxy and server, each datagram is in an envelope with the client's address, which a
// [Link] authenticates by a key that both have. So the limits of a server per network, its cookies
// and path migration use the addresses of clients. A server sets transport.Config.Network to a
// [Network]. An envelope is neither encrypted nor protected against replay: like an IP network, the
// path between proxy and server may lose, repeat and reorder datagrams.
package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"sync"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	macSize = 16
	// MaxOverhead is the maximum size of an envelope without its datagram, in bytes.
	MaxOverhead = 1 + 16 + 2 + macSize
	// MaxDatagram is the maximum size of a datagram in an envelope, in bytes.
	MaxDatagram = wire.MaxDatagram
)

// Direction is the direction of an envelope.
type Direction uint8

// The directions. An envelope of one is not accepted in the other.
const (
	ToServer Direction = iota
	ToClient
)

// Link makes and opens the envelopes between a proxy and its servers. It is safe for concurrent
// use.
type Link struct {
	mu  sync.Mutex
	mac hash.Hash
	sum [sha256.Size]byte
}

// NewLink returns a link with a secret key, the same at both ends.
func NewLink(key [32]byte) *Link { return &Link{mac: hmac.New(sha256.New, key[:])} }

// Append appends the envelope of a datagram that a client sent or is to receive, at most
// [MaxOverhead] bytes longer: family u8, 4 or 6; address; port u16, little-endian; the datagram; 16
// bytes of HMAC-SHA-256 over the direction u8 and everything before.
func (l *Link) Append(dst []byte, d Direction, client netip.AddrPort, datagram []byte) []byte {
	n, a := len(dst), client.Addr().Unmap()
	family := byte(6)
	if a.Is4() {
		family = 4
		ip := a.As4()
		dst = append(append(dst, family), ip[:]...)
	} else {
		ip := a.As16()
		dst = append(append(dst, family), ip[:]...)
	}
	dst = binary.LittleEndian.AppendUint16(dst, client.Port())
	dst = append(dst, datagram...)
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(dst, l.tag(d, dst[n:])...)
}

// Open returns the client's address and the datagram of an envelope, which shares its memory. It
// reports false if the envelope is not authentic, or of another direction.
func (l *Link) Open(d Direction, b []byte) (client netip.AddrPort, datagram []byte, ok bool) {
	size, end := 4, len(b)-macSize
	if len(b) > 0 && b[0] == 6 {
		size = 16
	}
	if end < 1+size+2 || b[0] != 4 && b[0] != 6 {
		return client, nil, false
	}
	l.mu.Lock()
	ok = hmac.Equal(l.tag(d, b[:end]), b[end:])
	l.mu.Unlock()
	if !ok {
		return client, nil, false
	}
	ip, _ := netip.AddrFromSlice(b[1 : 1+size])
	return netip.AddrPortFrom(ip.Unmap(), binary.LittleEndian.Uint16(b[1+size:])), b[1+size+2 : end], true
}

// tag returns the MAC of an envelope. The lock is held.
func (l *Link) tag(d Direction, b []byte) []byte {
	l.mac.Reset()
	l.sum[0] = byte(d)
	l.mac.Write(l.sum[:1])
	l.mac.Write(b)
	return l.mac.Sum(l.sum[:0])[:macSize]
}

// Route returns the route id of a client's hello, which shares its memory. It reports false for any
// other datagram, and for hellos of other versions.
func Route(datagram []byte) (route []byte, ok bool) {
	h, err := wire.ParseHello(datagram)
	if err != nil || h.Version != wire.Version {
		return nil, false
	}
	return h.Route, true
}

// ServerID returns the server id of a datagram with a connection id, transport.Config.ServerID of
// the server that it is for. It reports false for any other datagram.
func ServerID(datagram []byte) (id uint16, ok bool) {
	h, err := wire.ParseHeader(datagram)
	return wire.ServerOf(h.ID), err == nil && h.Long
}

// Established reports whether a datagram of a server shows that the server has validated the
// client's address: if it is encrypted. A proxy then learns which server the address uses. It
// remembers nothing of other datagrams, whose source may be forged.
func Established(datagram []byte) bool {
	form, err := wire.FormOf(datagram)
	if err != nil || form != wire.HandshakeForm {
		return err == nil
	}
	t, err := wire.ParseType(datagram)
	return err == nil && t == wire.WelcomeType
}

// AppendHint appends the answer to a client's datagram without a connection id whose server the
// proxy does not know: the client then sends its connection id. The answer is never longer than the
// datagram. AppendHint reports false, and appends nothing, if there is no answer. A proxy should
// limit the rate of hints.
func AppendHint(dst, datagram []byte) ([]byte, bool) {
	h, err := wire.ParseHeader(datagram)
	if err != nil || h.Long || h.Kind == wire.CloseKind || len(datagram) < wire.UnknownSize(h) {
		return dst, false
	}
	return wire.AppendUnknown(dst, wire.Unknown{Echo: h}), true
}
