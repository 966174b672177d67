package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"io"
	"net/netip"
	"time"
)

const (
	// CookieSize is the size of a cookie: 4 bytes of time, 20 of a MAC.
	CookieSize = 24
	// CookieLife is how long a cookie is good for.
	CookieLife = 10 * time.Second

	cookieTurn = time.Minute // for how long a secret makes cookies
)

// Cookies makes and checks the cookies by which a listener sees that whoever sent a hello gets what is
// sent to its address, before it spends work or memory on it. Nothing is kept of a cookie. It is not
// safe for concurrent use.
type Cookies struct {
	random  io.Reader
	start   time.Time
	turned  uint32       // ms after start at which the current secret was made
	secrets [2]hash.Hash // current, previous
	scratch struct {
		secret [32]byte
		msg    [4 + 16 + 2 + 8]byte
		sum    [sha256.Size]byte
	}
}

// NewCookies returns cookies with a new secret. Random gives this one and, each minute, the next: nil is
// crypto/rand. The source must not fail.
func NewCookies(random io.Reader, now time.Time) *Cookies {
	if random == nil {
		random = rand.Reader
	}
	c := &Cookies{random: random, start: now}
	c.turn(0)
	c.turn(0)
	return c
}

// Make returns a cookie for the sender of a hello with that nonce. Nothing is allocated, but for a new
// secret each minute. IPv4 addresses count the same in either form; zones do not count.
func (c *Cookies) Make(addr netip.AddrPort, nonce uint64, now time.Time) (cookie [CookieSize]byte) {
	at := c.at(now)
	binary.BigEndian.PutUint32(cookie[:], at)
	copy(cookie[4:], c.mac(c.secrets[0], addr, nonce, at))
	return cookie
}

// Check reports whether the cookie was made by [Cookies.Make] for that address and nonce, no longer than
// [CookieLife] ago. Nothing is allocated, but for a new secret each minute.
func (c *Cookies) Check(cookie [CookieSize]byte, addr netip.AddrPort, nonce uint64, now time.Time) bool {
	made, at := binary.BigEndian.Uint32(cookie[:]), c.at(now)
	if at-made > uint32(CookieLife.Milliseconds()) {
		return false
	}
	secret := c.secrets[0]
	if int32(made-c.turned) < 0 {
		secret = c.secrets[1]
	}
	return subtle.ConstantTimeCompare(cookie[4:], c.mac(secret, addr, nonce, made)) == 1
}

// at returns the milliseconds from the start until now, which wrap after 49 days, and makes a new secret
// if it is time for one.
func (c *Cookies) at(now time.Time) uint32 {
	at := uint32(now.Sub(c.start).Milliseconds())
	if at-c.turned >= uint32(cookieTurn.Milliseconds()) {
		c.turn(at)
	}
	return at
}

// turn makes a new secret.
func (c *Cookies) turn(at uint32) {
	_ = must(io.ReadFull(c.random, c.scratch.secret[:]))
	c.secrets[1] = c.secrets[0]
	c.secrets[0] = hmac.New(sha256.New, c.scratch.secret[:])
	c.turned = at
}

// mac returns the MAC of a cookie, in scratch.
func (c *Cookies) mac(secret hash.Hash, addr netip.AddrPort, nonce uint64, at uint32) []byte {
	s := &c.scratch
	ip := addr.Addr().As16()
	msg := binary.BigEndian.AppendUint32(s.msg[:0], at)
	msg = append(msg, ip[:]...)
	msg = binary.BigEndian.AppendUint16(msg, addr.Port())
	msg = binary.BigEndian.AppendUint64(msg, nonce)
	secret.Reset()
	secret.Write(msg)
	return secret.Sum(s.sum[:0])[:CookieSize-4]
}
