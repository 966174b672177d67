package web

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are pipes, so that time limits are in the test's time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns the client's end of a new connection.
func (p *pipes) dial() net.Conn {
	c, s := net.Pipe()
	p.conns <- s
	return c
}

// serve starts a server until the test ends. Its handler reads the body of POST /; GET /stream
// writes a line every minute, GET /slow answers after two minutes, GET /large writes without end.
func serve(t *testing.T) *pipes {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if errors.As(err, new(*http.MaxBytesError)) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		fmt.Fprintf(w, "%d bytes, %v", len(b), err)
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		s := NewStream(w)
		for _, err := s.Write(nil); err == nil && r.Context().Err() == nil; _, err = fmt.Fprintln(s, "a line") {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
		}
	})
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(2 * time.Minute):
			_, _ = fmt.Fprintln(NewStream(w), "at last")
		}
	})
	mux.HandleFunc("GET /large", func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 1<<10))
		}
	})
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := NewServer(mux)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(p) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
		time.Sleep(time.Second) // connections that are being closed
	})
	return p
}

// TestSlowClients connects 3,000 clients that send the head of a request and one byte of its body,
// and others that are slow in other ways. The server closes each connection after its limit.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t)
		const head = "POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
		var clients sync.WaitGroup
		client := func(name, text string, per time.Duration, limit time.Duration) {
			clients.Go(func() {
				c := p.dial()
				defer c.Close()
				start := time.Now()
				go func() {
					for i := range text { // byte by byte
						if _, err := io.WriteString(c, text[i:i+1]); err != nil {
							return
						}
						time.Sleep(per)
					}
				}()
				_, _ = io.Copy(io.Discard, c) // until the server closes the connection
				if d := time.Since(start); d < limit-time.Second || d > limit+time.Second {
					t.Errorf("%s: open for %v, want %v", name, d, limit)
				}
			})
		}
		for range 3000 {
			client("one byte of the body", head+"{", 0, readTimeout)
		}
		client("nothing", "", 0, readHeaderTimeout)
		client("half a header", "GET / HTTP/1.1\r\nHo", 0, readHeaderTimeout)
		client("a byte of the header a second", head, time.Second, readHeaderTimeout)
		client("a byte of the body a second", head+strings.Repeat("x", 1000), 10*time.Millisecond, readTimeout)
		client("a request and no other", "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 0, idleTimeout)
		clients.Wait()
	})
}

// TestSlowReader requests answers and does not read them: the server gives up after its limit.
func TestSlowReader(t *testing.T) {
	for _, path := range []string{"/large", "/stream"} {
		synctest.Test(t, func(t *testing.T) {
			c := serve(t).dial()
			defer c.Close()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2*writeTimeout + time.Minute)
			if b, err := io.ReadAll(io.LimitReader(c, 1<<20)); err != nil || len(b) != 0 { // the connection is closed
				t.Errorf("%s: %d bytes, %v", path, len(b), err)
			}
		})
	}
}

// TestStream reads an answer that takes longer than all limits, and one that begins late.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t)
		for path, lines := range map[string]int{"/stream": 10, "/slow": 1} {
			c := p.dial()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			for body := bufio.NewScanner(res.Body); lines > 0 && body.Scan(); {
				lines--
			}
			if lines > 0 {
				t.Errorf("%s: %d lines are missing", path, lines)
			}
			_ = c.Close()
		}
	})
}

// TestSizes sends a body and a header of the permitted size, and larger ones.
func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t)
		for _, c := range []struct{ header, body, status int }{
			{maxHeader / 2, maxBody, http.StatusOK},
			{0, maxBody + 1, http.StatusRequestEntityTooLarge},
			{2 * maxHeader, 0, http.StatusRequestHeaderFieldsTooLarge},
		} {
			conn := p.dial()
			go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nX: %s\r\n\r\n%s", c.body, strings.Repeat("x", c.header), strings.Repeat("x", c.body))
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || res.StatusCode != c.status {
				t.Errorf("a header of %d bytes and a body of %d: %+v, %v, want %d", c.header, c.body, res, err, c.status)
			}
			_ = conn.Close()
		}
	})
}
