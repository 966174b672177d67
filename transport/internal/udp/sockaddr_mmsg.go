//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package udp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	sockaddrSize  = unix.SizeofSockaddrInet6
	sockaddrSize4 = unix.SizeofSockaddrInet4
)

// sockaddr is the kernel's struct sockaddr_in or sockaddr_in6: 2 bytes family in the machine's order, 2 bytes
// port in the network's, then 4 bytes IPv4 address, or 4 bytes flow, 16 bytes IPv6 address, 4 bytes scope in
// the machine's order.
type sockaddr [sockaddrSize]byte

// set makes s the address a for a socket of IPv4 or of both families, and returns its size.
func (s *sockaddr) set(a netip.AddrPort, four bool, z *zones) (uint32, error) {
	ip := a.Addr()
	binary.BigEndian.PutUint16(s[2:], a.Port())
	if four {
		if ip = ip.Unmap(); !ip.Is4() {
			return 0, &net.AddrError{Err: "not an address of IPv4", Addr: ip.String()}
		}
		binary.NativeEndian.PutUint16(s[:], unix.AF_INET)
		*(*[4]byte)(s[4:]) = ip.As4()
		clear(s[8:sockaddrSize4])
		return sockaddrSize4, nil
	}
	if !ip.IsValid() {
		return 0, &net.AddrError{Err: "no address", Addr: a.String()}
	}
	var scope uint32
	if zone := ip.Zone(); zone != "" {
		var err error
		if scope, err = z.scope(zone); err != nil {
			return 0, err
		}
	}
	binary.NativeEndian.PutUint16(s[:], unix.AF_INET6)
	clear(s[4:8])
	*(*[16]byte)(s[8:]) = ip.As16()
	binary.NativeEndian.PutUint32(s[24:], scope)
	return sockaddrSize, nil
}

// addr returns the address, an IPv4 one unmapped. Of a family other than the two it is invalid.
func (s *sockaddr) addr(z *zones) netip.AddrPort {
	port := binary.BigEndian.Uint16(s[2:])
	switch binary.NativeEndian.Uint16(s[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:])), port)
	case unix.AF_INET6:
		ip := netip.AddrFrom16([16]byte(s[8:])).Unmap()
		if scope := binary.NativeEndian.Uint32(s[24:]); scope != 0 {
			ip = ip.WithZone(z.name(scope))
		}
		return netip.AddrPortFrom(ip, port)
	default:
		return netip.AddrPort{}
	}
}

// zones knows the interfaces that link-local addresses name, since to ask the kernel costs system calls and
// memory. There are no more of them than interfaces.
type zones struct {
	names  map[uint32]string
	scopes map[string]uint32
}

// name returns the name of an interface, or its number if it has none.
func (z *zones) name(scope uint32) string {
	if name, ok := z.names[scope]; ok {
		return name
	}
	iface, err := net.InterfaceByIndex(int(scope))
	if err != nil {
		return strconv.FormatUint(uint64(scope), 10)
	}
	z.learn(iface.Name, scope)
	return iface.Name
}

// scope returns the number of an interface, given by its name or as a number.
func (z *zones) scope(zone string) (uint32, error) {
	if scope, ok := z.scopes[zone]; ok {
		return scope, nil
	}
	if iface, err := net.InterfaceByName(zone); err == nil {
		z.learn(zone, uint32(iface.Index))
		return uint32(iface.Index), nil
	}
	scope, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("no interface %q: %w", zone, err)
	}
	return uint32(scope), nil
}

func (z *zones) learn(name string, scope uint32) {
	if z.names == nil {
		z.names, z.scopes = make(map[uint32]string), make(map[string]uint32)
	}
	z.names[scope], z.scopes[name] = name, scope
}
