package udp

import (
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

func TestSum(t *testing.T) {
	const table = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  711: 0100007F:1E61 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 24682 2 0000000000000000 17
  712: 00000000:1E61 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 24683 2 0000000000000000 4
  713: 0100007F:1E62 0100007F:1E61 01 00000000:00000000 00:00000000 00000000  1000        0 24684 2 0000000000000000 9
`
	for port, want := range map[uint16]uint64{7777: 21, 7778: 9, 1: 0} {
		if n, err := sum(strings.NewReader(table), port); n != want || err != nil {
			t.Errorf("port %d: %d dropped, %v, want %d", port, n, err, want)
		}
	}
	if _, err := sum(strings.NewReader("1: 0:0001 0:0 x"), 1); err == nil {
		t.Error("a table without numbers is no error")
	}
}

// TestKernelDrops sends more than a socket has room for.
func TestKernelDrops(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	socket := check.Value(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer func() { _ = socket.Close() }()
	check.Must(t, socket.SetReadBuffer(4<<10))
	addr := socket.LocalAddr().(*net.UDPAddr)
	for range 100 {
		check.Value(socket.WriteTo(make([]byte, 1000), addr))(t)
	}
	if n, ok := KernelDrops(uint16(addr.Port)); n == 0 || n > 100 || !ok {
		t.Errorf("%d of 100 datagrams dropped, %v", n, ok)
	}
}
