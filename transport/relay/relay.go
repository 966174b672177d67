// Package relay connects servers with a UDP proxy in front of them. Such a proxy does not know the
// keys of sessions and tokens. It determines the server of a datagram from unencrypted fields:
// [Route] and [ServerID]. examples/proxy is a complete proxy.
//
// Between proxy and server, each datagram is in an [Envelope] with the client's address, which a
// [Link] authenticates with a key that both share. The server's limits per network, its cookies and
// path migration therefore use the addresses of clients. A server sets ds.Config.Network to a
// [Network].
//
// An envelope is authentic only between a server and the address of the proxy for which it was
// made: a copy that is sent from elsewhere is not accepted. It is not encrypted. Like an IP
// network, the path between proxy and server may lose, repeat and reorder datagrams.
package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"sync"

	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

const (
	macSize  = 16
	markSize = 8
	// MaxOverhead is the maximum size of an envelope without its datagram, in bytes.
	MaxOverhead = 1 + 16 + 2 + markSize + macSize
	// MaxDatagram is the maximum size of a datagram in an envelope, in bytes.
	MaxDatagram = wire.MaxDatagram
)

// Direction is the direction of an envelope.
type Direction uint8

// The directions. An envelope is accepted only in its own direction.
const (
	ToServer Direction = iota
	ToClient
)

// Envelope is a datagram between a proxy and a server.
type Envelope struct {
	// Proxy is the address of the proxy as the server sees it, which both ends know: it is
	// authenticated, but not sent.
	Proxy netip.AddrPort
	// Client is the address of the client.
	Client netip.AddrPort
	// Mark is a number that the proxy chooses. The server copies it from the client's newest
	// envelope to its own envelopes for that client; it is 0 if the server has none. The proxy can
	// thereby detect old envelopes.
	Mark uint64
	// Datagram is the datagram that the client sent or that it shall receive.
	Datagram []byte
}

// Link makes and opens the envelopes between proxies and servers. It is safe for concurrent use.
type Link struct {
	mu    sync.Mutex
	mac   hash.Hash
	sum   [sha256.Size]byte
	bound [1 + 1 + 16 + 2]byte // scratch for the direction and the proxy's address
}

// NewLink returns a link with the secret key that the proxies and servers share.
func NewLink(key [32]byte) *Link { return &Link{mac: hmac.New(sha256.New, key[:])} }

// Append appends an envelope, at most [MaxOverhead] bytes longer than its datagram. Its format is
// the client's address (family u8, 4 or 6; IP address; port u16), the mark as u64, the datagram,
// and a MAC: the first 16 bytes of HMAC-SHA-256 over the direction as u8, the proxy's address in
// the same format, and the envelope up to the MAC. Integers are little-endian.
func (l *Link) Append(dst []byte, d Direction, e Envelope) []byte {
	n := len(dst)
	dst = appendAddr(dst, e.Client)
	dst = binary.LittleEndian.AppendUint64(dst, e.Mark)
	dst = append(dst, e.Datagram...)
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(dst, l.tag(d, e.Proxy, dst[n:])...)
}

func appendAddr(dst []byte, at netip.AddrPort) []byte {
	if a := at.Addr().Unmap(); a.Is4() {
		ip := a.As4()
		dst = append(append(dst, 4), ip[:]...)
	} else {
		ip := a.As16()
		dst = append(append(dst, 6), ip[:]...)
	}
	return binary.LittleEndian.AppendUint16(dst, at.Port())
}

// Open authenticates and returns an envelope, whose datagram shares the memory of b. It reports
// false if the envelope is not authentic, of another direction, or for another address of the
// proxy.
func (l *Link) Open(d Direction, proxy netip.AddrPort, b []byte) (e Envelope, ok bool) {
	size, end := 1+4+2, len(b)-macSize
	if len(b) > 0 && b[0] == 6 {
		size = 1 + 16 + 2
	}
	if end < size+markSize || b[0] != 4 && b[0] != 6 {
		return e, false
	}
	l.mu.Lock()
	ok = hmac.Equal(l.tag(d, proxy, b[:end]), b[end:])
	l.mu.Unlock()
	if !ok {
		return e, false
	}
	ip, _ := netip.AddrFromSlice(b[1 : size-2])
	return Envelope{
		Proxy:  proxy,
		Client: netip.AddrPortFrom(ip.Unmap(), binary.LittleEndian.Uint16(b[size-2:])),
		Mark:   binary.LittleEndian.Uint64(b[size:]), Datagram: b[size+markSize : end],
	}, true
}

// tag returns the MAC of an envelope. The lock is held.
func (l *Link) tag(d Direction, proxy netip.AddrPort, b []byte) []byte {
	l.mac.Reset()
	l.mac.Write(appendAddr(append(l.bound[:0], byte(d)), proxy))
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

// ServerID returns the server id of a datagram with a connection id. It is the ServerID of
// ds.Transport at the destination server. It reports false for any other datagram.
func ServerID(datagram []byte) (id uint16, ok bool) {
	h, err := wire.ParseHeader(datagram)
	return wire.ServerOf(h.ID), err == nil && h.Long
}

// Established reports whether a datagram from a server proves that the server has validated the
// client's address. Welcomes do, and all encrypted datagrams except challenges. A proxy should
// store the server of an address only after such a datagram, because a challenge may be sent to an
// address that does not belong to the client.
func Established(datagram []byte) bool {
	if h, err := wire.ParseHeader(datagram); err == nil {
		return h.Kind != wire.ChallengeKind
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
