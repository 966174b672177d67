package transport

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// developmentLife is for how long a token that Dial makes is good.
const developmentLife = time.Minute

// key returns the key of a listener at that address, or [token.ErrNoKey].
func (c Config) key(local netip.AddrPort) (token.Key, error) {
	k := c.Key
	if k.IsZero() {
		k = token.Development()
	}
	if k.Equal(token.Development()) && !c.developmentAt(local) {
		return k, fmt.Errorf("transport: listening on %v: %w, and set Config.Key, or listen on a loopback address such as 127.0.0.1", local, token.ErrNoKey)
	}
	return k, nil
}

// developmentAt reports whether the development key does for an address.
func (c Config) developmentAt(a netip.AddrPort) bool {
	return c.Insecure || a.Addr().Unmap().IsLoopback()
}

// servers returns a function that reports whether a token for a server's address is good for a listener of
// that key at that address.
func (c Config) servers(k token.Key, local netip.AddrPort) (func(netip.AddrPort) bool, error) {
	addrs := make([]netip.AddrPort, 0, len(c.Addrs)+1)
	for _, a := range c.Addrs {
		if !a.IsValid() || a.Port() == 0 {
			return nil, fmt.Errorf("transport: Config.Addrs has %v, which is no address with a port", a)
		}
		addrs = append(addrs, bare(a))
	}
	switch {
	case k.Equal(token.Development()):
		return func(a netip.AddrPort) bool { return c.developmentAt(a) || slices.Contains(addrs, bare(a)) }, nil
	case len(addrs) == 0 && local.Addr().IsUnspecified():
		return nil, fmt.Errorf("transport: listening on %v: set Config.Addrs to the addresses that clients dial, since their tokens name one", local)
	case len(addrs) == 0:
		addrs = append(addrs, bare(local))
	}
	return func(a netip.AddrPort) bool { return slices.Contains(addrs, bare(a)) }, nil
}

// bare returns the address as tokens have it.
func bare(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// token returns the token for dialing an address, or [token.ErrNoToken].
func (c Config) token(remote netip.AddrPort) (token.Token, error) {
	switch {
	case c.Token != token.Token{}:
		return c.Token, nil
	case !c.developmentAt(remote):
		return token.Token{}, fmt.Errorf("transport: dialing %v: %w, and set Config.Token, or dial a loopback address such as 127.0.0.1", remote, token.ErrNoToken)
	}
	now := c.wall()
	return token.Issue(token.Development().Issuer(), token.Claims{
		ClientID: randomID(),
		Issued:   now,
		Expires:  now.Add(developmentLife),
		Servers:  []netip.AddrPort{bare(remote)},
	})
}

// randomID returns a random number that is not 0, for ids and nonces.
func randomID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}
