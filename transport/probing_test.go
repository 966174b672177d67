package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestMaxPayload: where the path carries more than what is assumed, so does Send, until the path is
// another.
func TestMaxPayload(t *testing.T) {
	for mtu, want := range map[int]int{0: 1472, 1500: 1472, 1400: 1372, 1228: 1200, 1000: 0} {
		synctest.Test(t, func(t *testing.T) {
			link := simnet.Config{Delay: 20 * time.Millisecond, MTU: mtu, Loss: 0.02, Seed: uint64(mtu)}
			w := newWorld(t, link)
			s := w.serverConn(t)
			for range 2 {
				if got := w.conn.MaxPayload(); got != transport.MaxPayload {
					t.Errorf("MTU %d: payloads of %d bytes at first", mtu, got)
				}
				time.Sleep(20 * time.Second)
				payload := max(want, 1200) - 11 - 16
				if got := w.conn.Stats().MaxDatagram; got != want || w.conn.MaxPayload() != payload {
					t.Errorf("MTU %d: found %d, and payloads of %d bytes, want %d and %d", mtu, got, w.conn.MaxPayload(), want, payload)
				}
				for range 5 {
					if err := w.conn.Send(make([]byte, payload)); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.conn.Rebind(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			if _, _, came, _ := w.server.snapshot(); len(came) == 0 == (want != 0) {
				t.Errorf("MTU %d: %d of the largest payloads came", mtu, len(came))
			}
			if got := s.Stats().MaxDatagram; got != 0 || s.MaxPayload() != transport.MaxPayload {
				t.Errorf("the server's end: %d, %d", got, s.MaxPayload())
			}
		})
	}
}
