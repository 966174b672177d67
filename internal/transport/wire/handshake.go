package wire

import (
	"encoding/binary"
	"math"
)

// Type is the type of a handshake datagram.
type Type uint8

// The types. A client only sends hellos.
const (
	HelloType   Type = iota // client requests a session
	RetryType               // listener requests validation of the client's address
	WelcomeType             // listener grants or refuses a session; authenticated
	RefuseType              // listener refuses a session; unauthenticated
	UnknownType             // listener does not know the session; unauthenticated
	types
)

const typeMask = 1<<formShift - 1

// RecordMark is the first byte of the record of a decrypted datagram in one direction, RecordMark+1
// in the other. No datagram begins with them, because the last two types are not used.
const RecordMark = uint8(HandshakeForm)<<formShift + typeMask - 1

// ParseType returns the type of a handshake datagram, or [ErrMalformed] for any other.
func ParseType(b []byte) (Type, error) {
	form, err := FormOf(b)
	if err != nil || form != HandshakeForm || len(b) > BaseDatagram {
		return 0, ErrMalformed
	}
	t := Type(b[0] & typeMask)
	if t >= types {
		return 0, ErrMalformed
	}
	return t, nil
}

func appendType(b []byte, t Type) []byte { return append(b, uint8(HandshakeForm)<<formShift|uint8(t)) }

// bodyOf returns the bytes after the first byte of a handshake datagram of type want.
func bodyOf(b []byte, want Type) ([]byte, error) {
	if t, err := ParseType(b); err != nil || t != want {
		return nil, ErrMalformed
	}
	return b[1:], nil
}

const (
	// CookieSize is the size of a cookie in bytes.
	CookieSize = 24
	// HelloSize is the minimum size of a hello in bytes.
	HelloSize = 64

	// KeySize is the size of a key id in bytes.
	KeySize = 4
	// MaxRoute is the maximum size of a route id in bytes.
	MaxRoute = 16

	helloHeader = 1 + 2 + 8 + CookieSize + KeySize + 1 + 2 // size without a route id
	// MaxHelloMessage is the maximum size of the message of a hello in bytes.
	MaxHelloMessage = BaseDatagram - helloHeader - MaxRoute
)

// Hello requests a session. Version and Nonce have the same offsets in all versions.
type Hello struct {
	Version uint16
	Nonce   uint64           // random, new for each attempt to connect
	Cookie  [CookieSize]byte // cookie of a retry; zeros at first
	Key     [KeySize]byte    // id of the listener's key for which Message is encrypted
	Route   []byte           // route id, at most MaxRoute bytes; for proxies
	Message []byte           // message of the key exchange; empty at first
}

// AppendHello appends a hello. It is padded with zeros to at least [HelloSize] bytes. With a
// message it is padded to at least [WelcomeSize] bytes, so that no answer is longer than the hello.
// The message has at most [MaxHelloMessage] bytes.
func AppendHello(b []byte, h Hello) []byte {
	size := HelloSize
	if len(h.Message) > 0 {
		size = max(WelcomeSize, helloHeader+len(h.Route)+len(h.Message))
	}
	end := len(b) + max(size, HelloSize)
	b = appendType(b, HelloType)
	b = binary.LittleEndian.AppendUint16(b, h.Version)
	b = binary.LittleEndian.AppendUint64(b, h.Nonce)
	b = append(b, h.Cookie[:]...)
	b = append(b, h.Key[:]...)
	b = append(append(b, uint8(len(h.Route))), h.Route...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h.Message)))
	b = append(b, h.Message...)
	var zeros [max(HelloSize, WelcomeSize)]byte
	return append(b, zeros[:max(end-len(b), 0)]...)
}

// ParseHello reads a hello. If the hello has another version, only Version and Nonce are set. A
// hello shorter than AppendHello produces is [ErrMalformed]. Bytes after the message are ignored.
func ParseHello(b []byte) (Hello, error) {
	body, err := bodyOf(b, HelloType)
	if err != nil || len(b) < HelloSize {
		return Hello{}, ErrMalformed
	}
	h := Hello{Version: binary.LittleEndian.Uint16(body), Nonce: binary.LittleEndian.Uint64(body[2:])}
	if h.Version != Version {
		return h, nil
	}
	copy(h.Cookie[:], body[10:])
	copy(h.Key[:], body[10+CookieSize:])
	body = body[10+CookieSize+KeySize:]
	route := int(body[0])
	if route > MaxRoute {
		return Hello{}, ErrMalformed
	}
	if route > 0 {
		h.Route = body[1 : 1+route]
	}
	size, rest := int(binary.LittleEndian.Uint16(body[1+route:])), body[1+route+2:]
	if size > len(rest) || size > 0 && len(b) < WelcomeSize {
		return Hello{}, ErrMalformed
	}
	h.Message = rest[:size]
	return h, nil
}

// Offer is the payload of a hello's message.
type Offer struct {
	Suites uint8  // bit i: the client supports suite i
	Token  []byte // encrypted token
}

// AppendOffer appends an offer.
func AppendOffer(b []byte, o Offer) []byte { return append(append(b, o.Suites), o.Token...) }

// ParseOffer reads an offer; an empty one is [ErrMalformed].
func ParseOffer(b []byte) (Offer, error) {
	if len(b) < 1 {
		return Offer{}, ErrMalformed
	}
	return Offer{Suites: b[0], Token: b[1:]}, nil
}

// RetrySize is the size of a retry in bytes.
const RetrySize = 1 + 8 + CookieSize

// Retry answers a hello without a valid cookie. The client sends another hello with the cookie of
// the retry.
type Retry struct {
	Nonce  uint64 // nonce of the hello
	Cookie [CookieSize]byte
}

// AppendRetry appends a retry.
func AppendRetry(b []byte, r Retry) []byte {
	b = binary.LittleEndian.AppendUint64(appendType(b, RetryType), r.Nonce)
	return append(b, r.Cookie[:]...)
}

// ParseRetry reads a retry; one of any other length is [ErrMalformed].
func ParseRetry(b []byte) (Retry, error) {
	body, err := bodyOf(b, RetryType)
	if err != nil || len(b) != RetrySize {
		return Retry{}, ErrMalformed
	}
	r := Retry{Nonce: binary.LittleEndian.Uint64(body)}
	copy(r.Cookie[:], body[8:])
	return r, nil
}

const (
	welcomeHeader = 1 + 8
	// grantMessage is the size of the key exchange's answer: a public key, the grant, an AEAD tag.
	grantMessage = 32 + GrantSize + 16
	// WelcomeSize is the size of a welcome in bytes.
	WelcomeSize = welcomeHeader + grantMessage
)

// Welcome answers a hello. Only the client can read its message, which authenticates the listener.
type Welcome struct {
	Nonce   uint64 // nonce of the hello
	Message []byte // message of the key exchange; its payload is a [Grant]
}

// AppendWelcome appends a welcome.
func AppendWelcome(b []byte, w Welcome) []byte {
	b = binary.LittleEndian.AppendUint64(appendType(b, WelcomeType), w.Nonce)
	return append(b, w.Message...)
}

// ParseWelcome reads a welcome; one of any other length than [WelcomeSize] is [ErrMalformed].
func ParseWelcome(b []byte) (Welcome, error) {
	body, err := bodyOf(b, WelcomeType)
	if err != nil || len(b) != WelcomeSize {
		return Welcome{}, ErrMalformed
	}
	return Welcome{Nonce: binary.LittleEndian.Uint64(body), Message: body[8:]}, nil
}

// GrantSize is the size of a grant in bytes.
const GrantSize = 1 + 8 + 1

// Code is the result of a request for a session.
type Code uint8

// The codes of a grant.
const (
	Granted      Code = iota
	TokenExpired      // the token has expired
	TokenUsed         // the token has been used
	TokenRefused      // the token is altered, or issued with another key
	TokenServer       // the token is for another server
	TokenStale        // the token was issued before the server started
	ServerFull        // the listener has the maximum number of sessions
	NoSuite           // the listener supports none of the offered suites
	TokenAhead        // the token was issued by a clock that is too far ahead of the listener's
	codes
)

// Grant is the payload of a welcome's message.
type Grant struct {
	Code  Code
	ID    uint64 // id of the session, random; 0 if refused
	Suite uint8  // 0 if refused
	// Detail replaces ID if the code is not [Granted]. Its meaning depends on the code.
	// [TokenExpired]: seconds since the token expired. [TokenStale]: seconds from the issue of the
	// token to the listener's start. [ServerFull]: the maximum number of sessions, 0 if the
	// listener drains. [NoSuite]: the permitted suites, bit i for suite i. [TokenAhead]: see
	// [AheadDetail].
	Detail uint64
}

// AheadDetail returns the detail of [TokenAhead]. ahead is the time from the listener's clock to
// the issue of the token, clock the listener's clock since 1970, both in seconds.
func AheadDetail(ahead, clock int64) uint64 {
	limit := func(n int64) uint64 { return uint64(min(max(n, 0), math.MaxUint32)) }
	return limit(ahead) | limit(clock)<<32
}

// ParseAhead returns the arguments of [AheadDetail].
func ParseAhead(detail uint64) (ahead, clock int64) {
	return int64(uint32(detail)), int64(detail >> 32)
}

// AppendGrant appends a grant.
func AppendGrant(b []byte, g Grant) []byte {
	number := g.Detail
	if g.Code == Granted {
		number = g.ID
	}
	b = binary.LittleEndian.AppendUint64(append(b, uint8(g.Code)), number)
	return append(b, g.Suite)
}

// ParseGrant reads a grant; one of any other length, with an unknown code, or granted with the id
// 0, is [ErrMalformed].
func ParseGrant(b []byte) (Grant, error) {
	if len(b) != GrantSize {
		return Grant{}, ErrMalformed
	}
	g := Grant{Code: Code(b[0]), Suite: b[9]}
	number := binary.LittleEndian.Uint64(b[1:])
	switch {
	case g.Code >= codes || g.Code == Granted && number == 0:
		return Grant{}, ErrMalformed
	case g.Code == Granted:
		g.ID = number
	default:
		g.Detail = number
	}
	return g, nil
}

// RefuseSize is the size of a refuse in bytes.
const RefuseSize = 1 + 8 + 1

// RefuseReason is the reason of a refuse.
type RefuseReason uint8

// The reasons to refuse.
const (
	RefuseVersion RefuseReason = iota + 1 // the listener does not support the hello's version
	RefuseBusy                            // there are too many handshakes
	RefuseKey                             // the listener does not have the hello's key, or the message is altered
	RefuseStore                           // the listener cannot reach the state of its fleet
)

// Refuse is an unauthenticated refusal of a hello. Its layout is the same in all versions.
type Refuse struct {
	Nonce  uint64 // nonce of the hello
	Reason RefuseReason
}

// AppendRefuse appends a refuse.
func AppendRefuse(b []byte, r Refuse) []byte {
	b = binary.LittleEndian.AppendUint64(appendType(b, RefuseType), r.Nonce)
	return append(b, uint8(r.Reason))
}

// ParseRefuse reads a refuse; one of any other length is [ErrMalformed]. The reason may be unknown.
func ParseRefuse(b []byte) (Refuse, error) {
	body, err := bodyOf(b, RefuseType)
	if err != nil || len(b) != RefuseSize {
		return Refuse{}, ErrMalformed
	}
	return Refuse{Nonce: binary.LittleEndian.Uint64(body), Reason: RefuseReason(body[8])}, nil
}

// Unknown is the hint that the listener has no session for a datagram. It is unauthenticated.
type Unknown struct {
	Echo Header // header of the datagram
}

// UnknownSize returns the size of an unknown in bytes. A listener does not answer shorter
// datagrams, so that it amplifies nothing.
func UnknownSize(echo Header) int { return 1 + echo.Size() }

// AppendUnknown appends an unknown.
func AppendUnknown(b []byte, u Unknown) []byte {
	return AppendHeader(appendType(b, UnknownType), u.Echo)
}

// ParseUnknown reads an unknown; one of any other length is [ErrMalformed].
func ParseUnknown(b []byte) (Unknown, error) {
	body, err := bodyOf(b, UnknownType)
	if err != nil {
		return Unknown{}, ErrMalformed
	}
	echo, err := ParseHeader(body)
	if err != nil || echo.Size() != len(body) {
		return Unknown{}, ErrMalformed
	}
	return Unknown{Echo: echo}, nil
}
