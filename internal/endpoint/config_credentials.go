package endpoint

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/keylog"
	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/token"
)

const developmentLife = time.Minute

// keys returns the keys of a listener.
func (c Config) keys() ([]token.Key, error) {
	if c.Key.IsZero() && len(c.OtherKeys) == 0 {
		return []token.Key{token.Development()}, nil
	}
	keys := append([]token.Key{c.Key}, c.OtherKeys...)
	if err := checkKeys(keys, isDevelopment(keys)); err != nil {
		return nil, fmt.Errorf("Config.Key and Config.OtherKeys: %w", err)
	}
	return keys, nil
}

// isDevelopment reports whether the development key is the only key of a listener.
func isDevelopment(keys []token.Key) bool {
	return len(keys) == 1 && keys[0].Equal(token.Development())
}

// MaxKeys is the maximum number of keys of a listener.
const MaxKeys = 8

// checkKeys checks the keys of a listener that uses the development key or not.
func checkKeys(keys []token.Key, development bool) error {
	ids := map[token.KeyID]bool{}
	for _, k := range keys {
		switch {
		case k.IsZero():
			return token.ErrNoKey
		case k.Equal(token.Development()) != development:
			return errors.New("the development key cannot be used with other keys")
		case ids[k.ID()]:
			return fmt.Errorf("two keys have the id %v", k.ID())
		}
		ids[k.ID()] = true
	}
	if len(keys) < 1 || len(keys) > MaxKeys {
		return fmt.Errorf("%d keys, want 1 to %d", len(keys), MaxKeys)
	}
	return nil
}

// developmentAt reports whether the development key is permitted at an address.
func (c Config) developmentAt(a netip.AddrPort) bool {
	return c.Insecure || a.Addr().Unmap().IsLoopback()
}

// servers returns a function that reports whether a listener at that local address, with the
// development key or another one, accepts tokens that name a server address.
func (c Config) servers(development bool, local netip.AddrPort) (func(netip.AddrPort) bool, error) {
	addrs := make([]netip.AddrPort, 0, len(c.Addrs)+1)
	for _, a := range c.Addrs {
		if !a.IsValid() || a.Port() == 0 {
			return nil, fmt.Errorf("setting Addrs has %v, which is no address with a port", a)
		}
		addrs = append(addrs, canonical(a))
	}
	switch {
	case development || c.Addrs != nil:
	case local.Addr().IsUnspecified():
		return nil, fmt.Errorf("listening on %v: set Config.Addrs to the addresses that clients dial, since their tokens name one", local)
	default:
		addrs = append(addrs, canonical(local))
	}
	return func(a netip.AddrPort) bool {
		return development && c.developmentAt(a) || slices.Contains(addrs, canonical(a))
	}, nil
}

// canonical returns the address in the form that tokens use.
func canonical(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// token returns the token for dialing an address, or [token.ErrNoToken].
func (c Config) token(remote netip.AddrPort) (token.Token, error) {
	switch {
	case c.Token != token.Token{}:
		return c.Token, nil
	case !c.developmentAt(remote):
		return token.Token{}, fmt.Errorf("%w, and set Config.Token, or dial a loopback address such as 127.0.0.1", token.ErrNoToken)
	}
	now := c.wall()
	return token.Issue(token.Development().Issuer(), token.Claims{
		ClientID: randomID(),
		Issued:   now,
		Expires:  now.Add(developmentLife),
		Servers:  []netip.AddrPort{canonical(remote)},
	})
}

// randomID returns a random number other than 0, for ids and nonces.
func randomID() (id uint64) {
	for id == 0 {
		_ = binary.Read(rand.Reader, binary.LittleEndian, &id) // never fails
	}
	return id
}

// keyLogMu guards all writers of key logs, which configurations may share.
var keyLogMu sync.Mutex

// keyLog returns the function that logs the secrets of a session, or nil if [Config.KeyLog] is nil.
func (c Config) keyLog() func(uint64, seal.Suite, seal.Secrets) {
	if c.KeyLog == nil {
		return nil
	}
	return func(id uint64, suite seal.Suite, secrets seal.Secrets) {
		s := keylog.Session{ID: id, Suite: suite, ToServer: secrets.ToServer, ToClient: secrets.ToClient}
		line := s.Append(nil)
		keyLogMu.Lock()
		defer keyLogMu.Unlock()
		if _, err := c.KeyLog.Write(line); err != nil {
			c.Logger.Warn("key log not written", "error", err)
		}
	}
}

// maxAddresses is the maximum number of addresses of a name that Dial tries.
const maxAddresses = 8

// lookupIP returns the addresses of a name. Tests replace it.
var lookupIP = net.DefaultResolver.LookupNetIP

// resolve returns the addresses of addr, "host:port", at most maxAddresses. They are in the order
// of the attempts: the order of the resolver (RFC 6724), with alternating families (RFC 8305,
// section 4). Errors state which part of addr is wrong.
func resolve(ctx context.Context, addr string) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(addr); err == nil {
		if a.Port() == 0 {
			return nil, errors.New("the address has port 0, want that of a server")
		}
		return []netip.AddrPort{netip.AddrPortFrom(scoped(a.Addr()), a.Port())}, nil
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return nil, err
	}
	ips, err := lookupIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	ips = alternating(ips)
	all := make([]netip.AddrPort, min(len(ips), maxAddresses))
	for i := range all {
		all[i] = netip.AddrPortFrom(ips[i], uint16(port))
	}
	return all, nil
}

// alternating returns the different addresses of ips, with alternating families as long as there
// are addresses of both, and otherwise in the same order. The first one stays.
func alternating(ips []netip.Addr) []netip.Addr {
	var families [2][]netip.Addr
	for _, ip := range ips {
		f := 0
		if ip = scoped(ip); ip.Is4() != scoped(ips[0]).Is4() {
			f = 1
		}
		if !slices.Contains(families[f], ip) {
			families[f] = append(families[f], ip)
		}
	}
	var all []netip.Addr
	for i := range max(len(families[0]), len(families[1])) {
		for _, f := range families {
			if i < len(f) {
				all = append(all, f[i])
			}
		}
	}
	return all
}

// scoped returns an address in the form that received datagrams have: only link-local addresses
// have a zone, which is the name of an interface.
func scoped(ip netip.Addr) netip.Addr {
	ip = ip.Unmap()
	if !ip.IsLinkLocalUnicast() {
		return ip.WithZone("")
	}
	if n, err := strconv.Atoi(ip.Zone()); err == nil {
		if i, err := net.InterfaceByIndex(n); err == nil {
			return ip.WithZone(i.Name)
		}
	}
	return ip
}

// localFor returns the local address for dialing a remote one: of the same family, and loopback if
// that is.
func localFor(remote netip.AddrPort) string {
	switch a := remote.Addr(); {
	case a.Is4() && a.IsLoopback():
		return "127.0.0.1:0"
	case a.Is4():
		return "0.0.0.0:0"
	case a.IsLoopback():
		return "[::1]:0"
	}
	return "[::]:0"
}
