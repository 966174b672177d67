package client_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	// segmentSize and tcpAckSize are the sizes of TCP packets in UDP payload bytes: with the
	// headers that the network adds, 296 bytes, the usual MTU of slow links, and 40 bytes.
	segmentSize = 296 - 28
	tcpAckSize  = 40 - 28
	maxSegments = 64 // receive window
)

// tcpFlow is an endless upload with the congestion control of TCP NewReno: slow start, additive
// increase, fast retransmit and recovery, and a retransmission timeout. The application limits
// nothing.
type tcpFlow struct {
	began    time.Time
	pc       transport.PacketConn
	to       netip.AddrPort
	received atomic.Uint64 // bytes on the wire that the receiver got

	una, next          uint32  // oldest unacked segment, next new one
	window, threshold  float64 // segments
	repeats            int     // acks of una
	highest            uint32  // end of what was ever sent
	recover            uint32  // end of the fast recovery, or of what was sent before a timeout
	recovering         bool
	smoothed, deviance time.Duration // of the round-trip time
	timeout            time.Duration
	expires            time.Time
}

// start starts the flow over the network. It ends with the test.
func (f *tcpFlow) start(t *testing.T, n *simnet.Network) {
	t.Helper()
	var pcs [2]transport.PacketConn
	for i := range pcs {
		pc, err := n.ListenPacket("127.0.0.1:0")
		uplinktest.Must(t, err)
		t.Cleanup(func() { _ = pc.Close() })
		pcs[i] = pc
	}
	f.pc, f.to = pcs[0], pcs[1].LocalAddr()
	f.began, f.timeout = time.Now(), time.Second
	f.expires = f.began.Add(f.timeout)
	f.window, f.threshold = 2, maxSegments
	go f.receive(pcs[1])
	go f.run()
}

// stop ends the flow.
func (f *tcpFlow) stop() { _ = f.pc.Close() }

// receive acks each segment with the number of the first missing one.
func (f *tcpFlow) receive(pc transport.PacketConn) {
	var buf [segmentSize]byte
	var first uint32
	early := map[uint32]bool{}
	for {
		n, from, err := pc.ReadFrom(buf[:])
		if err != nil {
			return
		}
		f.received.Add(uint64(n + 28))
		if got := binary.LittleEndian.Uint32(buf[8:]); got >= first {
			early[got] = true
		}
		for ; early[first]; first++ {
			delete(early, first)
		}
		ack := binary.LittleEndian.AppendUint32(buf[:8], first) // after the time of the segment
		if _, err := pc.WriteTo(ack[:tcpAckSize], from); err != nil {
			return
		}
	}
}

func (f *tcpFlow) run() {
	var buf [tcpAckSize]byte
	for {
		window := f.window
		if !f.recovering {
			window += float64(min(f.repeats, 2)) // limited transmit, RFC 3042
		}
		for ; f.next < f.una+uint32(min(window, maxSegments)); f.next++ {
			f.send(f.next)
		}
		f.highest = max(f.highest, f.next)
		if err := f.pc.SetReadDeadline(f.expires); err != nil {
			return // closed
		}
		_, _, err := f.pc.ReadFrom(buf[:])
		switch {
		case err == nil:
			rtt := time.Since(f.began) - time.Duration(binary.LittleEndian.Uint64(buf[:]))
			f.ack(binary.LittleEndian.Uint32(buf[8:]), rtt)
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.expire()
		default:
			return
		}
	}
}

func (f *tcpFlow) send(segment uint32) {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, segmentSize), uint64(time.Since(f.began)))
	b = binary.LittleEndian.AppendUint32(b, segment)
	_, _ = f.pc.WriteTo(b[:segmentSize], f.to)
}

// expire handles a retransmission timeout: everything is sent again, in slow start.
func (f *tcpFlow) expire() {
	f.threshold = max(float64(f.next-f.una)/2, 2)
	f.window, f.next, f.recover, f.repeats, f.recovering = 1, f.una, f.highest, 0, false
	f.timeout = min(2*f.timeout, time.Minute)
	f.expires = time.Now().Add(f.timeout)
}

func (f *tcpFlow) ack(first uint32, rtt time.Duration) {
	switch {
	case first > f.una:
		f.advance(first, rtt)
	case first == f.una && f.next > f.una:
		switch f.repeats++; {
		case f.recovering:
			f.window++
		case f.repeats == 3 && f.una >= f.recover:
			f.threshold = max(float64(f.next-f.una)/2, 2)
			f.window, f.recovering, f.recover = f.threshold+3, true, f.next
			f.send(f.una)
		}
	}
}

// advance handles an ack of new segments.
func (f *tcpFlow) advance(first uint32, rtt time.Duration) {
	acked := float64(first - f.una)
	f.una, f.next, f.repeats = first, max(f.next, first), 0
	f.measure(rtt)
	f.expires = time.Now().Add(f.timeout)
	switch {
	case f.recovering && first < f.recover: // a partial ack: the next one is lost too
		f.send(first)
		f.window = max(f.window-acked+1, 1)
	case f.recovering:
		f.recovering, f.window = false, f.threshold
	case f.window < f.threshold:
		f.window += acked
	default:
		f.window += acked / f.window
	}
}

// measure updates the retransmission timeout as RFC 6298 requires.
func (f *tcpFlow) measure(rtt time.Duration) {
	if f.smoothed == 0 {
		f.smoothed, f.deviance = rtt, rtt/2
	} else {
		f.deviance += ((rtt - f.smoothed).Abs() - f.deviance) / 4
		f.smoothed += (rtt - f.smoothed) / 8
	}
	f.timeout = f.smoothed + max(4*f.deviance, 200*time.Millisecond)
}
