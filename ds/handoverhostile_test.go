package ds_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// forger is a client that sends any data as the payload of a handover.
type forger struct {
	raw
	payload []byte // nil: none
	result  error  // of its stream
}

func (f *forger) Opened(c *transport.Conn) {
	if f.payload == nil {
		return
	}
	mux := streams.New(forgerOwner{conn: c})
	c.SetBulk(1<<20, mux.Next, func(b []byte, at time.Time) { _ = mux.Deliver(at, b) })
	_, err := mux.SendReserved(time.Now(), control.HandoverStream, f.payload, func(err error) { f.result = err })
	uplinktest.Must(f.t, err)
}

// forgerOwner is the owner of a forger's streams.
type forgerOwner struct{ conn *transport.Conn }

func (o forgerOwner) Wake()                                            { o.conn.WakeBulk() }
func (forgerOwner) Accept(*streams.Reader) bool                        { return false }
func (forgerOwner) AcceptReserved(*streams.Reader) func([]byte, error) { return nil }
func (forgerOwner) Count(int, int)                                     {}

// TestHandoverHostile uses tokens of handovers without their payload, with another one, and twice.
// Nobody joins with another payload than the token promises.
func TestHandoverHostile(t *testing.T) {
	promise := func(c *token.Claims) { c.Handover = sha256.Sum256([]byte("state")) }
	none := func(*token.Claims) {}
	for name, c := range map[string]struct {
		claims  func(*token.Claims)
		payload []byte
		uses    int
		dial    error // of the last use
		end     error // of the first one
		joined  int
		result  error // of the stream
	}{
		"as promised":   {promise, []byte("state"), 1, nil, nil, 1, nil},
		"no payload":    {promise, nil, 1, nil, session.ErrProtocol, 0, nil},
		"replayed":      {promise, nil, 2, token.ErrUsed, session.ErrProtocol, 0, nil},
		"another one":   {promise, []byte("stats"), 1, nil, session.ErrProtocol, 0, nil},
		"a shorter one": {promise, []byte("stat"), 1, nil, session.ErrProtocol, 0, nil},
		"an empty one":  {promise, []byte{}, 1, nil, session.ErrProtocol, 0, nil},
		"a long one":    {promise, make([]byte, ds.MaxHandover+1), 1, nil, session.ErrProtocol, 0, nil},
		"not promised":  {none, []byte("state"), 1, nil, nil, 1, session.ErrUnhandled},
	} {
		bubble(t, name, func(t *testing.T) {
			f := newSquad(t, linkedBy(t, 20*ms, simnet.Config{}), 2)
			cfg := transport.Config{Network: f.network, Token: f.token(7, c.claims)}
			var uses []*forger
			var err error
			for range c.uses {
				r := &forger{raw: raw{t: t}, payload: c.payload}
				if r.Conn, err = transport.Dial(t.Context(), f.members[0].addr, cfg, r); err == nil {
					t.Cleanup(func() { uplinktest.Must(t, r.Close()) })
					uses = append(uses, r)
				}
			}
			if !errors.Is(err, c.dial) {
				t.Errorf("dial: %v, want %v", err, c.dial)
			}
			settle(12 * time.Second)
			if len(uses) > 0 && (!errors.Is(uses[0].closed, c.end) || !errors.Is(uses[0].result, c.result)) {
				t.Errorf("the session ended with %v, want %v; the stream with %v, want %v", uses[0].closed, c.end, uses[0].result, c.result)
			}
			if n := len(f.ids()); n != c.joined {
				t.Errorf("%d joined, want %d", n, c.joined)
			}
			if p := f.player(7); p != nil {
				want := ""
				if c.result == nil {
					want = "state"
				}
				if got := string(p.HandoverPayload()); got != want {
					t.Errorf("the payload is %q, want %q", got, want)
				}
			}
		})
	}
}
