package udp

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// KernelDrops returns the number of datagrams that the kernel dropped because no program read them
// in time, at all open UDP sockets of this host with the given port. It reports false where the
// kernel does not count them: on all systems but Linux.
func KernelDrops(port uint16) (n uint64, ok bool) {
	for _, path := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		dropped, err := sum(f, port)
		_ = f.Close() // opened for reading only
		if err == nil {
			n, ok = n+dropped, true
		}
	}
	return n, ok
}

// sum adds up the drops in the kernel's table of sockets. The second column is address:port in
// hexadecimal, the last column the drops.
func sum(r io.Reader, port uint16) (total uint64, err error) {
	end := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		cells := strings.Fields(lines.Text())
		if len(cells) < 3 || !strings.HasSuffix(cells[1], end) {
			continue
		}
		n, err := strconv.ParseUint(cells[len(cells)-1], 10, 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, lines.Err()
}
