package ds_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestPoll verifies that handlers run in Poll only, in the order of arrival, and that Left is
// called for the players who remain when the server is closed.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 40*ms, simnet.Config{Seed: 20})
		running := false // no lock: the race detector sees a handler on another goroutine
		var events, want []string
		note := func(format string, args ...any) {
			if !running {
				t.Errorf("outside of Poll: "+format, args...)
			}
			events = append(events, fmt.Sprintf(format, args...))
		}
		notes := func(rpc string) setup {
			return handles(rpc, func(_ *ds.Player, f frame) { note("%s%d", rpc, f.Seq) })
		}
		srv := serve(t, network, ds.Config{
			Poll:   true,
			Joined: func(*ds.Player) { note("joined") },
			Left:   func(_ *ds.Player, err error) { note("left: %v", errors.Is(err, transport.ErrQuit)) },
		}, notes("A"), notes("B"))
		polled := 0
		poll := func() {
			settle(time.Second / 60)
			running = true
			polled += srv.Poll()
			running = false
		}
		conn := uplinktest.Dial(t, network, client.Config{})
		a, b := uplinktest.Bind(t, conn, "A"), uplinktest.Bind(t, conn, "B")
		want = append(want, "joined")
		for i := range uint64(30) {
			send(t, a, 1, i)
			want = append(want, fmt.Sprint("A", i))
			if i%3 == 0 {
				send(t, b, 1, i/3)
				want = append(want, fmt.Sprint("B", i/3))
			}
			if settle(time.Second / 60); i%4 == 0 {
				poll()
			}
		}
		uplinktest.Must(t, conn.Close())
		settle(time.Second)
		poll()
		uplinktest.Dial(t, network, client.Config{})
		settle(time.Second)
		uplinktest.Must(t, srv.Close())
		poll()
		poll() // there is no more
		want = append(want, "left: true", "joined", "left: false")
		if !slices.Equal(events, want) || polled != len(want) {
			t.Errorf("%d polled:\n%v, want\n%v", polled, events, want)
		}
	})
}

// TestJoinsWaitForPoll verifies that connections are refused while too many calls of Joined and
// Left wait for Poll.
func TestJoinsWaitForPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4 // players
		network := perfect(t)
		calls := 0
		srv := serve(t, network, ds.Config{
			Poll: true, MaxPlayers: most, Joined: func(*ds.Player) { calls++ }, Left: func(*ds.Player, error) { calls++ },
		})
		join := func() error {
			conn, err := client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: network, NoReconnect: true})
			if err == nil {
				settle(100 * ms)
				uplinktest.Must(t, conn.Close())
				settle(time.Second)
			}
			return err
		}
		for range 5 * most {
			_ = join() // refused before or after Dial returns
		}
		if n := srv.Poll(); n != calls || calls != 2*most {
			t.Errorf("%d handlers ran, %d calls, want %d", n, calls, 2*most)
		}
		uplinktest.Must(t, join())
		if n := srv.Poll(); n != 2 {
			t.Errorf("%d handlers ran for a player who came and went, want 2", n)
		}
	})
}

// interrupted calls f on a goroutine that a callback may end, and reports whether f returned.
func interrupted(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
		returned = true
	}()
	<-done
	return returned
}

// TestPollAfterPanic ends Poll while a handler runs, by a panic of PanicHandler that the game
// recovers and by runtime.Goexit. The next Poll continues with the rest of the queue and of jitter
// buffers, and then handles what arrived later. Shutdown waits for it.
func TestPollAfterPanic(t *testing.T) {
	for _, rpc := range []string{"Move", "Buffered"} {
		for _, exits := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s/exits=%v", rpc, exits), func(t *testing.T) { checkPollAfterPanic(t, rpc, exits) })
		}
	}
}

func checkPollAfterPanic(t *testing.T, rpc string, exits bool) {
	const players, frames = 3, 10
	network := perfect(t)
	got := map[*ds.Player][]uint64{}
	var culprit *ds.Player
	handle := func(p *ds.Player, f frame) {
		got[p] = append(got[p], f.Seq)
		if culprit != nil || f.Seq != frames-1 {
			return
		}
		if culprit = p; exits {
			runtime.Goexit()
		}
		panic(bug)
	}
	srv := serve(t, network, ds.Config{
		Poll: true, TickHz: 60, Logger: slog.New(slog.DiscardHandler),
		Hooks: ds.Hooks{
			PanicHandler: func(_ *ds.Player, v any, _ []byte) {
				if v != nil {
					panic(v)
				}
			},
		},
	}, handles("Move", handle), handles("Buffered", handle, ds.JitterBuffer{Depth: 50 * ms}))
	var streams []stream
	for range players {
		streams = append(streams, join(t, network, rpc))
	}
	poll := func() bool { return interrupted(func() { srv.Poll() }) }
	tick := func(i uint64) {
		for _, s := range streams {
			m := uplinktest.MoveAt(1, i)
			if _, err := s.Send(&m); err != nil && culprit == nil { // one of them is kicked then
				t.Error(err)
			}
		}
		settle(time.Second / 60)
	}
	for i := range uint64(frames) {
		if tick(i); rpc == "Buffered" {
			poll()
		}
	}
	for poll() && culprit == nil { // the buffers release the rest
		settle(time.Second / 60)
	}
	whole := func() (n int) {
		for _, seqs := range got {
			for i, seq := range seqs {
				if seq != uint64(i) {
					t.Fatalf("got %v", got)
				}
			}
			if len(seqs) >= frames {
				n++
			}
		}
		return n
	}
	if n := whole(); n == 0 || n == players {
		t.Fatalf("the Poll that did not return has delivered the frames of %d players", n)
	}
	down := make(chan error, 1)
	if rpc == "Move" {
		go func() { down <- srv.Shutdown(t.Context()) }()
		settle(10 * time.Second)
		if len(down) != 0 {
			t.Error("the server is down before all frames are handled")
		}
	}
	tick(frames)
	poll()
	for p, seqs := range got { // one tick more for all but the one whose handler did not return, so that none falls behind
		want := frames + 1
		if p == culprit || rpc == "Move" { // players have left
			want = frames
		}
		if len(seqs) != want || whole() != players {
			t.Errorf("after the next Poll %d frames of a player have come, want %d: %v", len(seqs), want, got)
		}
	}
	if n := srv.Stats().Panics; n != 1 {
		t.Errorf("%d panics", n)
	}
	if rpc == "Move" {
		settle(time.Second)
		uplinktest.Must(t, <-down)
	}
}

// TestMovesWaitForPoll verifies that only one call of Moved waits for a player whose address
// changes again and again.
func TestMovesWaitForPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		var from, addr []netip.AddrPort
		srv := serve(t, network, ds.Config{
			Poll:   true,
			Joined: func(p *ds.Player) { addr = append(addr, p.Addr()) },
			Hooks: ds.Hooks{
				Moved: func(p *ds.Player, earlier netip.AddrPort) {
					from, addr = append(from, earlier), append(addr, p.Addr())
				},
			},
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		settle(100 * ms)
		srv.Poll()
		for range 2 {
			for range 3 {
				uplinktest.Must(t, conn.Rebind())
				settle(3 * time.Second)
			}
			srv.Poll()
		}
		if len(from) != 2 || !slices.Equal(from, []netip.AddrPort{addr[0], addr[1]}) || addr[1] == addr[2] {
			t.Errorf("moved from %v, the addresses are %v", from, addr)
		}
	})
}
