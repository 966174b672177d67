package message_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// streamEnd is an end of a session whose game reads streams, but of one named "stop" nothing, and
// takes none named "unread".
type streamEnd struct {
	*streams.Mux
	work chan func()
}

func newStreamEnd() *streamEnd {
	e := &streamEnd{work: make(chan func(), 8)}
	e.Mux = streams.New(e)
	return e
}

func (e *streamEnd) Wake()          {}
func (e *streamEnd) Count(int, int) {}

func (e *streamEnd) AcceptReserved(*streams.Reader) func([]byte, error) { return nil }

func (e *streamEnd) Accept(r *streams.Reader) bool {
	if r.Name() == "unread" {
		return false
	}
	e.work <- func() {
		r.Serve(func() {
			for b := make([]byte, 32<<10); r.Name() != "stop"; {
				if _, err := r.Read(b); err != nil {
					break
				}
			}
		})
	}
	return true
}

type streamVector struct {
	From  string   `json:"from"`
	Name  string   `json:"name"`
	Size  int      `json:"size"`
	Bytes hexBytes `json:"bytes"` // at most the first 40
}

// streamVectors returns the messages of byte streams: one that is complete, one that the reader
// stops, one that it does not read, one that the writer aborts, and one with a reserved name.
func streamVectors(t *testing.T) (all []streamVector) {
	synctest.Test(t, func(t *testing.T) {
		client, server := newStreamEnd(), newStreamEnd()
		note := func(from string, b []byte) {
			names := []string{"open", "data", "end", "abort", "credit", "done"}
			all = append(all, streamVector{from, names[b[0]>>3], len(b), bytes.Clone(b[:min(len(b), 40)])})
		}
		exchange := func() {
			for {
				synctest.Wait()
				up := client.Next(nil, 1<<11)
				if len(up) > 0 {
					note("writer", up)
					check.Must(t, server.Deliver(time.Now(), up))
				}
				for len(server.work) > 0 {
					go (<-server.work)()
				}
				synctest.Wait()
				down := server.Next(nil, 1<<11)
				if len(down) > 0 {
					note("reader", down)
					check.Must(t, client.Deliver(time.Now(), down))
				}
				if len(up)+len(down) == 0 {
					return
				}
			}
		}
		open := func(name string) (write func(n int), end func()) {
			w := check.Value(client.Open(context.Background(), time.Now(), name))(t)
			exchange()
			return func(n int) { go func() { _, _ = w.Write(make([]byte, n)) }(); exchange() },
				func() { go func() { _ = w.Close() }(); exchange() }
		}
		write, end := open("level.bin")
		write(20 << 10)
		end()
		_, end = open("stop")
		end()
		_, end = open("unread")
		end()
		w := check.Value(client.Open(context.Background(), time.Now(), "cut"))(t)
		w.Abort("changed my mind")
		exchange()
		reserved := append([]byte{0}, "uplink.handover"...) // no game opens it
		note("writer", reserved)
		check.Must(t, server.Deliver(time.Now(), reserved))
		note("reader", server.Next(nil, 1<<11))
	})
	return all
}
