//go:build linux && field

package field

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// translate makes the router replace the sources of what leaves it for the server: by one of its
// addresses, and by a random port for each mapping.
func (n *network) translate(source string) error {
	c := n.router.command("nft", "-f", "-")
	c.Stdin = strings.NewReader(`table ip nat {}
delete table ip nat
table ip nat {
	chain postrouting {
		type nat hook postrouting priority srcnat
		oifname "r1" snat to ` + source + ` fully-random
	}
}
`)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}

// forget makes the router forget all mappings.
func (n *network) forget() error {
	return n.router.do(func() error {
		s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		const deleteMappings = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2
		var m []byte
		m = binary.NativeEndian.AppendUint32(m, 20) // length
		m = binary.NativeEndian.AppendUint16(m, deleteMappings)
		m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
		m = append(m, make([]byte, 8+4)...) // sequence, port; all families
		if err := unix.Sendto(s, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		answer := make([]byte, 4096)
		k, _, err := unix.Recvfrom(s, answer, 0)
		if err != nil {
			return err
		}
		if k < 20 || binary.NativeEndian.Uint32(answer[16:]) != 0 {
			return fmt.Errorf("the kernel does not delete mappings: % x", answer[:k])
		}
		return nil
	})
}
