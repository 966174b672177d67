package natsstore_test

import (
	"net"
	"sync"
	"testing"
)

// link forwards TCP connections. While it is cut, nothing arrives, and no connection ends: as in a
// partition of the network.
type link struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	cut     bool
	closed  bool
	open    []net.Conn
}

func newLink(t testing.TB, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to}
	l.changed.L = &l.mu
	l.work.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) addr() string { return l.listener.Addr().String() }

func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	l.changed.Broadcast()
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	_ = l.listener.Close()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.work.Wait()
}

// passes waits until the link is not cut, and reports whether it is open.
func (l *link) passes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.cut && !l.closed {
		l.changed.Wait()
	}
	return !l.closed
}

// own closes a connection with the link.
func (l *link) own(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if l.closed {
		_ = c.Close()
	}
}

func (l *link) accept() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.own(in)
		l.work.Go(func() {
			defer in.Close()
			if !l.passes() {
				return
			}
			out, err := net.Dial("tcp", l.to)
			if err != nil {
				return
			}
			l.own(out)
			l.work.Go(func() { l.forward(in, out) })
			l.forward(out, in)
		})
	}
}

// forward forwards one direction until either end is closed.
func (l *link) forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && l.passes() {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}
