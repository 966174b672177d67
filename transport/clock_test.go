package transport_test

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// wallClock is the time of the bubble with steps.
type wallClock struct{ ahead atomic.Int64 }

func (w *wallClock) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(w.ahead.Load()))
}

// TestWallClockSteps sets the wall clock of a listener and its backend ahead and back. A second
// after each step, tokens that are valid by the clock as it is then let their clients in, though
// those before took all handshakes that were left. No used token does so again, and the connection
// that was there at first stays.
func TestWallClockSteps(t *testing.T) {
	const hour = time.Hour
	for name, steps := range map[string][]time.Duration{
		"ahead":         {0, hour},
		"back":          {0, -hour},
		"ahead at once": {hour, 0},
		"back at once":  {-hour, 0},
		"to and fro":    {0, hour, 0, -hour, 0},
	} {
		for _, pause := range []time.Duration{time.Second, 2 * time.Minute} {
			t.Run(name+" every "+pause.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { stepWallClock(t, steps, pause) })
			})
		}
	}
}

func stepWallClock(t *testing.T, steps []time.Duration, pause time.Duration) {
	t.Helper()
	key, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	clock := &wallClock{}
	clock.ahead.Store(int64(steps[0]))
	n := newNetwork(t, simnet.Config{Delay: 10 * time.Millisecond})
	const each = 20
	cfg := transport.Config{Network: n, Key: key, Handshakes: each}
	transport.SetWall(&cfg, clock.now)
	server := &recorder{t: t}
	listen(t, serverAddr, cfg, server)
	client := uint64(0)
	issue := func() token.Token {
		client++
		tok, err := token.Issue(key.Issuer(), token.Claims{
			ClientID: client, Issued: clock.now(), Expires: clock.now().Add(time.Minute),
			Servers: []netip.AddrPort{mustAddr(serverAddr)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	join := func(tok token.Token, within time.Duration) (*transport.Conn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return transport.Dial(ctx, serverAddr, transport.Config{Network: n, Token: tok}, &recorder{t: t})
	}
	var spent []token.Token
	var first *transport.Conn
	for _, step := range steps {
		clock.ahead.Store(int64(step))
		for range 2 {
			tok := issue()
			c, err := join(tok, time.Second)
			if err != nil {
				t.Fatalf("a new token, with the clock %v ahead: %v", step, err)
			}
			if first == nil {
				first = c
			} else {
				_ = c.Close()
			}
			spent = append(spent, tok)
		}
		for _, tok := range spent {
			if c, err := join(tok, 2*time.Second); !errors.Is(err, token.ErrUsed) && !errors.Is(err, token.ErrExpired) {
				t.Errorf("a used token, with the clock %v ahead: %v, %v", step, c, err)
			}
		}
		for range 3 * each { // as many as there may be, and more
			if c, err := join(issue(), 300*time.Millisecond); err == nil {
				_ = c.Close()
			}
		}
		time.Sleep(pause)
	}
	if err := first.Send([]byte("still here")); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Second)
	if _, _, datagrams, _ := server.snapshot(); len(datagrams) != 1 {
		t.Errorf("got %q of the first connection", datagrams)
	}
	_ = first.Close()
}
