package endpoint_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// asked records the calls of Admit and answers them.
type asked struct {
	mu     sync.Mutex
	joins  []endpoint.Join
	answer func(ctx context.Context, n int) error // n counts the calls from 1
}

func (a *asked) admit(ctx context.Context, j endpoint.Join) error {
	a.mu.Lock()
	a.joins = append(a.joins, j)
	n := len(a.joins)
	a.mu.Unlock()
	return a.answer(ctx, n)
}

func (a *asked) calls() []endpoint.Join {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.joins
}

// TestAdmitSlow asks something that answers after 3 s: others play meanwhile, and it is asked once,
// although the client repeats its hello.
func TestAdmitSlow(t *testing.T) {
	a := &asked{answer: func(_ context.Context, n int) error {
		if n > 1 {
			time.Sleep(3 * time.Second)
		}
		return nil
	}}
	inWorld(t, good, func(t *testing.T, w *world) {
		w.server.onDatagram = func(c *endpoint.Conn, b []byte) { _ = c.Send(b) }
		joined := make(chan error, 1)
		start := time.Now()
		go func() {
			c, err := endpoint.Dial(t.Context(), serverAddr, w.cfg, &recorder{t: t})
			if err == nil {
				err = c.Close()
			}
			joined <- err
		}()
		time.Sleep(time.Second)
		if err := w.conn.Send([]byte("meanwhile")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if _, _, datagrams, _ := w.client.snapshot(); len(datagrams) != 1 {
			t.Errorf("%d echoes while a client waits", len(datagrams))
		}
		if err := <-joined; err != nil || time.Since(start) < 3*time.Second {
			t.Errorf("joined after %v: %v", time.Since(start), err)
		}
		if n := len(a.calls()); n != 2 {
			t.Errorf("asked %d times about 2 clients", n)
		}
	}, func(w *world) { w.serverCfg.Admit = a.admit })
}

// TestAdmitFails fails twice and then admits: the client gets in by itself, with the same attempt.
func TestAdmitFails(t *testing.T) {
	a := &asked{answer: func(_ context.Context, n int) error {
		if n < 3 {
			return errors.New("down")
		}
		return nil
	}}
	inWorld(t, good, func(t *testing.T, w *world) {
		w.serverConn(t)
		joins := a.calls()
		if len(joins) != 3 || joins[0] != joins[2] || joins[0].Token == (token.ID{}) || joins[0].Expires.IsZero() || joins[0].Attempt == [32]byte{} {
			t.Errorf("%+v", joins)
		}
	}, func(w *world) { w.serverCfg.Admit = a.admit })
}

// TestAdmitUsed dials three times with a token: the second while the first is being asked about.
// The third is refused by the answer.
func TestAdmitUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, err := token.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		a := &asked{answer: func(_ context.Context, n int) error {
			time.Sleep(time.Second)
			if n > 1 {
				return token.ErrUsed
			}
			return nil
		}}
		network := newNetwork(t, good)
		listen(t, serverAddr, endpoint.Config{Network: network, Key: key, Admit: a.admit}, &recorder{t: t})
		var admitted, used atomic.Int64
		var dialing sync.WaitGroup
		play := func(tok token.Token) {
			c, err := endpoint.Dial(t.Context(), serverAddr, endpoint.Config{Network: network, Token: tok}, &recorder{t: t})
			switch {
			case err == nil:
				admitted.Add(1)
				_ = c.Close()
			case errors.Is(err, token.ErrUsed):
				used.Add(1)
			default:
				t.Error(err)
			}
		}
		tok := issue(t, key, nil)
		dialing.Go(func() { play(tok) })
		dialing.Go(func() { play(tok) })
		dialing.Wait()
		if len(a.calls()) != 1 || admitted.Load() != 1 || used.Load() != 1 {
			t.Errorf("asked %d times: %d admitted, %d used", len(a.calls()), admitted.Load(), used.Load())
		}
		play(issue(t, key, nil))
		if admitted.Load() != 1 || used.Load() != 2 {
			t.Errorf("used elsewhere: %d admitted, %d used", admitted.Load(), used.Load())
		}
	})
}

// TestAdmitBounded lets more clients wait for an answer than may be pending, and closes the
// listener while they do.
func TestAdmitBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, clients = 8, 30
		var now, most atomic.Int64
		network := newNetwork(t, good)
		l := listen(t, serverAddr, endpoint.Config{
			Network: network, MaxPending: limit, Timeout: 3 * time.Second, Handshakes: 1000,
			Admit: func(ctx context.Context, _ endpoint.Join) error {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				<-ctx.Done()
				return ctx.Err()
			},
		}, &recorder{t: t})
		var dialing sync.WaitGroup
		for range clients {
			dialing.Go(func() {
				_, err := endpoint.Dial(t.Context(), serverAddr, endpoint.Config{Network: network, Timeout: 3 * time.Second}, &recorder{t: t})
				if !errors.Is(err, transport.ErrServerBusy) && !errors.Is(err, transport.ErrTimeout) {
					t.Errorf("%v", err)
				}
			})
		}
		dialing.Wait()
		if most.Load() != limit {
			t.Errorf("%d at a time, want %d", most.Load(), limit)
		}
		start := time.Now()
		if err := l.Close(); err != nil || now.Load() != 0 || time.Since(start) > time.Second {
			t.Errorf("%v: %d still asked, after %v", err, now.Load(), time.Since(start))
		}
	})
}
