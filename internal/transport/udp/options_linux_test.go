package udp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

func option(t *testing.T, c *Conn, level, name int) int {
	t.Helper()
	raw := check.Value(c.socket.SyscallConn())(t)
	var value int
	var failed error
	check.Must(t, raw.Control(func(fd uintptr) { value, failed = unix.GetsockoptInt(int(fd), level, name) }))
	if failed != nil {
		t.Fatal(failed)
	}
	return value
}

func TestNothingIsFragmented(t *testing.T) {
	for _, addr := range []string{":0", "127.0.0.1:0", "[::1]:0"} {
		c := open(t, addr)
		if got := option(t, c, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER); got != unix.IP_PMTUDISC_PROBE {
			t.Errorf("%s: IP_MTU_DISCOVER is %d", addr, got)
		}
		if option(t, c, unix.SOL_SOCKET, unix.SO_DOMAIN) != unix.AF_INET6 {
			continue
		}
		if got := option(t, c, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER); got != unix.IPV6_PMTUDISC_PROBE {
			t.Errorf("%s: IPV6_MTU_DISCOVER is %d", addr, got)
		}
	}
}
