//go:build native

// Package session runs the console clients of the native library as processes against a server,
// over a relay that loses and delays datagrams.
package session

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

const maxDatagram = 1472

// relay passes datagrams of one client to a server and back. Its port towards the server can
// change, like the port of a client behind a NAT.
type relay struct {
	front  *net.UDPConn // socket to the client
	server netip.AddrPort
	delay  time.Duration // one way
	loss   float64

	mu     sync.Mutex
	rng    *rand.Rand
	client netip.AddrPort
	back   *net.UDPConn
	backs  []*net.UDPConn
	lost   int
	passed int
}

func newRelay(delay time.Duration, loss float64, seed uint64) (*relay, error) {
	front, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, err
	}
	return &relay{front: front, delay: delay, loss: loss, rng: rand.New(rand.NewPCG(seed, 0))}, nil
}

// addr is where the client sends to.
func (r *relay) addr() netip.AddrPort { return r.front.LocalAddr().(*net.UDPAddr).AddrPort() }

// start begins to relay to a server.
func (r *relay) start(server netip.AddrPort) error {
	r.server = server
	if err := r.rebind(); err != nil {
		return err
	}
	go r.read(r.front, func(b []byte, from netip.AddrPort) {
		r.mu.Lock()
		r.client = from
		back := r.back
		r.mu.Unlock()
		r.pass(b, func(b []byte) { _, _ = back.WriteToUDPAddrPort(b, r.server) })
	})
	return nil
}

// rebind continues from another port.
func (r *relay) rebind() error {
	back, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.back = back
	r.backs = append(r.backs, back)
	r.mu.Unlock()
	go r.read(back, func(b []byte, _ netip.AddrPort) {
		r.mu.Lock()
		current, client := r.back, r.client
		r.mu.Unlock()
		if back == current { // the NAT has forgotten the other ports
			r.pass(b, func(b []byte) { _, _ = r.front.WriteToUDPAddrPort(b, client) })
		}
	})
	return nil
}

func (r *relay) read(c *net.UDPConn, f func([]byte, netip.AddrPort)) {
	for {
		b := make([]byte, maxDatagram+1)
		n, from, err := c.ReadFromUDPAddrPort(b)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil:
			f(b[:n], from)
		}
	}
}

// pass sends a datagram after the delay, or loses it.
func (r *relay) pass(b []byte, send func([]byte)) {
	r.mu.Lock()
	lost := r.rng.Float64() < r.loss
	if lost {
		r.lost++
	} else {
		r.passed++
	}
	r.mu.Unlock()
	if !lost {
		time.AfterFunc(r.delay, func() { send(b) })
	}
}

func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.front.Close()
	for _, c := range r.backs {
		_ = c.Close()
	}
}
