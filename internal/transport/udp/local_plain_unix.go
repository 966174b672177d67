//go:build darwin || freebsd || (linux && !(amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x))

package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// localOf returns the address in the control messages of a received datagram, or the zero value.
func localOf(control []byte) netip.Addr {
	for len(control) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(control)
		switch {
		case err != nil:
			return netip.Addr{}
		case h.Level == unix.IPPROTO_IP && h.Type == infoType4 && len(data) >= infoAt4+4:
			return usable(netip.AddrFrom4([4]byte(data[infoAt4:])))
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= 16:
			return usable(netip.AddrFrom16([16]byte(data)))
		}
		control = rest
	}
	return netip.Addr{}
}

// appendLocal appends the control message with the source of a datagram.
func appendLocal(b []byte, local netip.Addr) []byte {
	if local.Is4() {
		var info [infoSize4]byte
		*(*[4]byte)(info[infoAt4:]) = local.As4()
		return appendControl(b, unix.IPPROTO_IP, infoType4, info[:])
	}
	var info [unix.SizeofInet6Pktinfo]byte
	*(*[16]byte)(info[:]) = local.As16()
	return appendControl(b, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, info[:])
}

func appendControl(b []byte, level, kind int32, data []byte) []byte {
	n := len(b)
	b = append(b, make([]byte, unix.CmsgSpace(len(data)))...)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[n]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(len(data)))
	copy(b[n+unix.CmsgLen(0):], data)
	return b
}
