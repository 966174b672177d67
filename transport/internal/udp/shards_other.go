//go:build !linux

package udp

import "fmt"

// ListenShards opens one socket, whatever n, which must be at least 1: the operating system does not spread
// datagrams over several.
func ListenShards(addr string, n int) ([]*Conn, error) {
	if n < 1 {
		return nil, fmt.Errorf("transport: %d shards, must be at least 1", n)
	}
	c, err := Listen(addr)
	if err != nil {
		return nil, err
	}
	return []*Conn{c}, nil
}
