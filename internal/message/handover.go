package message

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/uplink-rpc/uplink/token"
)

const (
	// MaxHandover is the maximum size of the data that a game hands over to another server, in
	// bytes.
	MaxHandover = 64 << 10
	// NoStream is the Stream of a HandoverNotice that takes effect at once.
	NoStream = 255
	// HandoverStream is the name of the byte stream that carries the data of a handover. Names with
	// the prefix streams.ReservedPrefix are not for games.
	HandoverStream = "uplink.handover"

	// MaxTick is the maximum of HandoverNotice.Tick.
	MaxTick = 1<<53 - 1

	maxStream = 15
)

// HandoverNotice requests that the client continue at another server.
type HandoverNotice struct {
	// Stream is the number of a replication stream. The handover takes effect at tick Tick of its
	// world. With NoStream it takes effect at once, and Tick is 0.
	Stream uint8
	Tick   uint64
	// Size is the size of the game's data, up to MaxHandover, and Hash its SHA-256. Both are 0 if
	// there are no data.
	Size int
	Hash [sha256.Size]byte
	// Servers are 1 to 8 addresses of the other server, without zones, IPv4 unmapped.
	Servers []netip.AddrPort
	// Token is the client's connect token for the other server. Its claims contain the hash of a
	// secret, see [Secret.Hash].
	Token token.Token
}

// AppendHandover appends a handover with its type. The handover must satisfy the conditions of
// [ParseHandover].
func AppendHandover(dst []byte, h *HandoverNotice) []byte {
	dst = binary.AppendUvarint(append(dst, byte(Handover), h.Stream), h.Tick)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.Size))
	if h.Size > 0 {
		dst = append(dst, h.Hash[:]...)
	}
	dst = append(dst, byte(len(h.Servers)))
	for _, s := range h.Servers {
		family := byte(6)
		if s.Addr().Is4() {
			family = 4
		}
		dst = append(append(dst, family), s.Addr().AsSlice()...)
		dst = binary.LittleEndian.AppendUint16(dst, s.Port())
	}
	return append(dst, h.Token.String()...)
}

// ParseHandover parses a handover without its type. An error wraps ErrMalformed: a stream, tick,
// size or address out of range, no server, or a malformed token.
func ParseHandover(b []byte) (HandoverNotice, error) {
	h, rest, err := parseHandoverHead(b)
	if err != nil {
		return HandoverNotice{}, err
	}
	if len(rest) == 0 || rest[0] < 1 || rest[0] > token.MaxServers {
		return HandoverNotice{}, malformedHandover("no number of servers from 1 to %d", token.MaxServers)
	}
	h.Servers, rest = make([]netip.AddrPort, rest[0]), rest[1:]
	for i := range h.Servers {
		if h.Servers[i], rest, err = parseServer(rest); err != nil {
			return HandoverNotice{}, err
		}
	}
	if h.Token, err = token.Parse(string(rest)); err != nil {
		return HandoverNotice{}, malformedHandover("%v", err)
	}
	return h, nil
}

// parseHandoverHead parses the fields before the servers.
func parseHandoverHead(b []byte) (h HandoverNotice, rest []byte, err error) {
	if len(b) == 0 || b[0] > maxStream && b[0] != NoStream {
		return h, nil, malformedHandover("no number of a replication stream")
	}
	var n int
	h.Stream = b[0]
	h.Tick, n = binary.Uvarint(b[1:])
	if n <= 0 || h.Tick > MaxTick || h.Stream == NoStream && h.Tick != 0 {
		return h, nil, malformedHandover("tick %d of stream %d", h.Tick, h.Stream)
	}
	if b = b[1+n:]; len(b) < 4 || binary.LittleEndian.Uint32(b) > MaxHandover {
		return h, nil, malformedHandover("no size up to %d bytes", MaxHandover)
	}
	h.Size, b = int(binary.LittleEndian.Uint32(b)), b[4:]
	if h.Size == 0 {
		return h, b, nil
	}
	if len(b) < sha256.Size {
		return h, nil, malformedHandover("no hash")
	}
	return HandoverNotice{h.Stream, h.Tick, h.Size, [sha256.Size]byte(b), nil, token.Token{}}, b[sha256.Size:], nil
}

// Secret proves that a server has released a player. Only this server knows it until then.
type Secret [32]byte

// NewSecret returns a random secret.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// Hash returns the handover hash of a token: the SHA-256 of the secret and the game's data.
func (s Secret) Hash(data []byte) (hash [sha256.Size]byte) {
	h := sha256.New()
	h.Write(s[:])
	h.Write(data)
	return [sha256.Size]byte(h.Sum(hash[:0]))
}

// AppendSwitch appends, with its type, the message by which a client reports to its former server
// that it has switched to another server.
func AppendSwitch(dst []byte) []byte { return append(dst, byte(Handover)) }

// AppendRelease appends, with its type, the message that releases a player. The client passes it to
// the other server.
func AppendRelease(dst []byte, s Secret) []byte { return append(append(dst, byte(Handover)), s[:]...) }

// IsRelease reports whether a Handover message of a server, without its type, is a release.
func IsRelease(b []byte) bool { return len(b) == len(Secret{}) }

// ParseRelease parses a Handover message of a client without its type: a release, or the report
// that it has switched. The error is ErrMalformed.
func ParseRelease(b []byte) (s Secret, released bool, err error) {
	switch len(b) {
	case 0:
		return s, false, nil
	case len(s):
		return Secret(b), true, nil
	}
	return s, false, malformedHandover("%d bytes of a client", len(b))
}

// parseServer parses an address and port in the format that the claims of tokens use.
func parseServer(b []byte) (s netip.AddrPort, rest []byte, err error) {
	size := 4
	if len(b) > 0 && b[0] == 6 {
		size = 16
	}
	if len(b) < 1+size+2 || b[0] != 4 && b[0] != 6 {
		return s, nil, malformedHandover("no address of a server")
	}
	a, _ := netip.AddrFromSlice(b[1 : 1+size])
	s = netip.AddrPortFrom(a, binary.LittleEndian.Uint16(b[1+size:]))
	if a.IsUnspecified() || a.Is4In6() || s.Port() == 0 {
		return s, nil, malformedHandover("a server at %v", s)
	}
	return s, b[1+size+2:], nil
}

func malformedHandover(format string, args ...any) error {
	return fmt.Errorf("%w: handover: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
