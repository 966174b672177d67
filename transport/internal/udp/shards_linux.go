package udp

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// ListenShards opens n sockets, at least 1, on the same address; with port 0 the first decides the port. The
// kernel gives all datagrams of one sender to the same socket, while none of them is closed.
func ListenShards(addr string, n int) ([]*Conn, error) {
	if n < 1 {
		return nil, fmt.Errorf("transport: %d shards, must be at least 1", n)
	}
	var shards []*Conn
	for range n {
		c, err := listen(addr, n > 1)
		if err != nil {
			for _, s := range shards {
				err = errors.Join(err, s.Close())
			}
			return nil, err
		}
		if len(shards) == 0 {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			addr = net.JoinHostPort(host, strconv.Itoa(int(c.LocalAddr().Port())))
		}
		shards = append(shards, c)
	}
	return shards, nil
}
