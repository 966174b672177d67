// Package yardstick measures what datagrams cost the operating system alone: a server that does nothing but read
// batches, and perhaps answer, on the sockets that the transport uses. No server on them can cost less, so the DS is
// compared with it.
//
// Over loopback the system delivers a datagram on the sender's account: a send there includes what a network card's
// interrupt would do at the receiver.
package yardstick

import (
	"errors"
	"net"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/transport"
)

// Server counts what it receives and sends. Its counters can be read at any time.
type Server struct {
	Received, Sent, Batches atomic.Uint64

	pc     transport.BatchConn
	batch  []transport.Datagram
	answer int
}

// New returns a server that reads at most so many datagrams at a time, and answers each with one of answer bytes, or
// not at all if that is 0.
func New(pc transport.BatchConn, batch, answer int) *Server {
	return &Server{pc: pc, batch: Batch(batch), answer: answer}
}

// Batch returns n datagrams with buffers as large as the transport's.
func Batch(n int) []transport.Datagram {
	batch := make([]transport.Datagram, n)
	for i := range batch {
		batch[i].Buf = make([]byte, 1500)
	}
	return batch
}

// Serve returns nil when the packet connection is closed. Answers that the system does not take are not counted.
func (s *Server) Serve() error {
	for {
		n, err := s.pc.ReadBatch(s.batch)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		s.Received.Add(uint64(n))
		s.Batches.Add(1)
		if s.answer > 0 {
			s.reply(s.batch[:n])
		}
	}
}

// reply sends a datagram to each sender.
func (s *Server) reply(to []transport.Datagram) {
	for i := range to {
		to[i].N = s.answer
	}
	for len(to) > 0 {
		n, err := s.pc.WriteBatch(to)
		s.Sent.Add(uint64(n))
		if err == nil {
			return
		}
		to = to[n+1:]
	}
}
