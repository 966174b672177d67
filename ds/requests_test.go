package ds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestRequests makes requests from several goroutines over a link with 10 % packet loss. The game
// answers some at once, some later from other goroutines, and refuses some; each client goroutine
// gets the answers to its own requests. Requests and messages of one goroutine arrive in order.
func TestRequests(t *testing.T) {
	const askers, each = 8, 40
	for _, poll := range []bool{false, true} {
		bubble(t, fmt.Sprintf("poll=%t", poll), func(t *testing.T) {
			network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Jitter: 10 * ms, Duplicate: 0.1, Seed: 11})
			rng := rand.New(rand.NewPCG(11, 0))
			var next [askers]byte
			arrive := func(b []byte) { // b is the asker, then its count of messages and requests
				if next[b[0]] != b[1] {
					t.Errorf("asker %d: %d arrived, want %d", b[0], b[1], next[b[0]])
				}
				next[b[0]]++
			}
			srv := serve(t, network, ds.Config{
				Poll:      poll,
				OnMessage: func(_ *ds.Player, b []byte) { arrive(b) },
				Hooks: ds.Hooks{
					OnRequest: func(r *ds.Request) {
						arrive(r.Message)
						switch rng.IntN(3) {
						case 0:
							uplinktest.Must(t, r.Reply(append([]byte("at once "), r.Message...)))
						case 1:
							time.AfterFunc(time.Duration(rng.IntN(200))*ms, func() {
								uplinktest.Must(t, r.Reply(append([]byte("later "), r.Message...)))
								if r.Reply(nil) == nil || r.Fail("") == nil {
									t.Error("a request was answered twice")
								}
							})
						case 2:
							uplinktest.Must(t, r.Fail("refused "+string(r.Message)+strings.Repeat("!", 300)))
						}
					},
				},
			})
			if poll {
				polling(t, 10*ms, func() { srv.Poll() })
			}
			conn := uplinktest.Dial(t, network, client.Config{})
			var all sync.WaitGroup
			for asker := range byte(askers) {
				all.Go(func() {
					for i := range byte(each) {
						uplinktest.Must(t, conn.SendReliable([]byte{asker, 2 * i}))
						msg := []byte{asker, 2*i + 1}
						answer, err := conn.Request(t.Context(), msg)
						if failure, ok := errors.AsType[*client.RequestError](err); ok {
							if len(failure.Reason) != message.MaxRefusal {
								t.Errorf("a reason of %d bytes", len(failure.Reason))
							}
							answer, err = []byte(failure.Reason), nil
						}
						if err != nil || !bytes.Contains(answer, msg) {
							t.Errorf("the answer to %x is %q, %v", msg, answer, err)
						}
					}
				})
			}
			all.Wait()
			if n := srv.Stats().Requests; n != askers*each {
				t.Errorf("%d requests, want %d", n, askers*each)
			}
		})
	}
}

// TestRequestEnds verifies how requests end that get no answer: by their context, which frees their
// place, by the end of the session, and by a server that handles none; and the limits.
func TestRequestEnds(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := linkedBy(t, 20*ms, simnet.Config{})
		var kept []*ds.Request
		srv := serve(t, network, ds.Config{Hooks: ds.Hooks{OnRequest: func(r *ds.Request) { kept = append(kept, r) }}})
		conn := uplinktest.Dial(t, network, client.Config{})
		ask := func(ctx context.Context, n int) (results []error) {
			errs := make(chan error)
			for range n {
				go func() {
					_, err := conn.Request(ctx, []byte{1})
					errs <- err
				}()
			}
			for range n {
				results = append(results, <-errs)
			}
			return results
		}
		for range 3 { // of 64 requests each
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			full := 0
			for _, err := range ask(ctx, message.MaxRequests+1) {
				switch {
				case errors.Is(err, transport.ErrBacklog) && strings.Contains(err.Error(), "64 requests"):
					full++
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
			}
			if full != 1 {
				t.Errorf("%d requests were above the limit", full)
			}
			cancel()
			settle(time.Second)
		}
		for _, r := range kept {
			if err := r.Reply(nil); !errors.Is(err, context.Canceled) {
				t.Errorf("answered a canceled request: %v", err)
			}
		}
		_, tooLong := conn.Request(t.Context(), make([]byte, client.MaxMessage+1))
		wantErrors(t, "client: ", map[string]error{"8193 bytes": tooLong})

		n := len(kept)
		time.AfterFunc(time.Second, func() {
			wantErrors(t, "ds: ", map[string]error{"8193 bytes": kept[n].Reply(make([]byte, ds.MaxMessage+1))})
			kept[n].Player.Kick("enough")
		})
		for _, err := range ask(t.Context(), 2) {
			if !errors.Is(err, transport.ErrKicked) {
				t.Errorf("after a kick: %v", err)
			}
		}
		settle(time.Second)
		if err := kept[n].Reply(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("answered after the end of the session: %v", err)
		}
		uplinktest.Must(t, srv.Close())

		serve(t, network, ds.Config{})
		_, err := uplinktest.Dial(t, network, client.Config{}).Request(t.Context(), nil)
		if !errors.Is(err, transport.ErrUnhandled) {
			t.Errorf("a server without OnRequest: %v", err)
		}
	})
}

// TestRequestViolations verifies that the server ends the session of a client with too many
// requests, or with requests that no client sends.
func TestRequestViolations(t *testing.T) {
	ask := func(k message.RequestKind, id uint32) []byte { return message.AppendRequest(nil, k, id, nil) }
	many := func(step uint32) (all [][]byte) {
		for i := range uint32(message.MaxRequests + 1) {
			all = append(all, ask(message.Ask, i*step))
		}
		return all
	}
	for name, c := range map[string]struct {
		messages [][]byte
		cause    error
	}{
		"too many":     {many(1), transport.ErrLimit},
		"the same id":  {many(0), transport.ErrProtocol},
		"an answer":    {[][]byte{ask(message.Answer, 1)}, transport.ErrProtocol},
		"unknown kind": {[][]byte{ask(9, 1)}, transport.ErrProtocol},
		"too short":    {[][]byte{ask(message.Ask, 1)[:5]}, transport.ErrProtocol},
		"too long":     {[][]byte{binary.BigEndian.AppendUint64(message.AppendRequest(nil, message.Ask, 1, make([]byte, message.MaxMessage)), 1)}, transport.ErrProtocol},
	} {
		bubble(t, name, func(t *testing.T) {
			network := perfect(t)
			serve(t, network, ds.Config{Hooks: ds.Hooks{OnRequest: func(*ds.Request) {}}})
			r := dialRaw(t, network)
			for _, b := range c.messages {
				for {
					err := r.SendReliable(b)
					if !errors.Is(err, transport.ErrBacklog) {
						break
					}
					settle(20 * ms)
				}
			}
			settle(time.Second)
			if !errors.Is(r.closed, c.cause) {
				t.Errorf("the session ended with %v, want %v", r.closed, c.cause)
			}
		})
	}
}
