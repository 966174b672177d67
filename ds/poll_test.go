package ds_test

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestPoll verifies that handlers run in Poll only, in the order of arrival.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 40*ms, simnet.Config{Seed: 20})
		polling := false // no lock: the race detector sees a handler on another goroutine
		var events []string
		note := func(format string, args ...any) {
			if !polling {
				t.Errorf("outside of Poll: "+format, args...)
			}
			events = append(events, fmt.Sprintf(format, args...))
		}
		srv := uplinktest.Serve(t, network, ds.Config{
			Poll:   true,
			Joined: func(*ds.Player) { note("joined") },
			Left:   func(_ *ds.Player, err error) { note("left: %v", errors.Is(err, transport.ErrClosedByPeer)) },
		}, func(s *ds.Server) error {
			var err error
			for _, rpc := range []string{"A", "B"} {
				err = errors.Join(err, ds.Handle(s, rpc, func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
					note("%s%d", rpc, f.Seq)
				}))
			}
			return err
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		a, b := uplinktest.Bind(t, conn, "A"), uplinktest.Bind(t, conn, "B")
		want := []string{"joined"}
		polled := 0
		for i := range uint64(30) {
			m := uplinktest.MoveAt(1, i)
			uplinktest.Must(t, a.Send(&m))
			want = append(want, fmt.Sprint("A", i))
			if i%3 == 0 {
				uplinktest.Must(t, b.Send(&m))
				want = append(want, fmt.Sprint("B", i/3))
			}
			settle(time.Second / 60)
			if i%4 == 0 {
				polling = true
				polled += srv.Poll()
				polling = false
			}
		}
		uplinktest.Must(t, conn.Close())
		want = append(want, "left: true")
		settle(time.Second)
		polling = true
		polled += srv.Poll()
		if n := srv.Poll(); n != 0 {
			t.Errorf("%d more handlers ran", n)
		}
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
		srv := uplinktest.Serve(t, network, ds.Config{
			Poll: true, MaxPlayers: most, Joined: func(*ds.Player) { calls++ }, Left: func(*ds.Player, error) { calls++ },
		}, func(*ds.Server) error { return nil })
		join := func() error {
			conn, err := client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: network, NoReconnect: true})
			if err != nil {
				return err
			}
			settle(100 * ms)
			uplinktest.Must(t, conn.Close())
			settle(time.Second)
			return nil
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

// moveBytes is the size of a waiting Move without its Payload; most have none.
const moveBytes = int(unsafe.Sizeof(ds.Frame[uplinktest.Move]{}) + 2*unsafe.Sizeof((*ds.Player)(nil)))

// TestPollOverflow verifies that what does not fit into the queue is dropped and counted.
func TestPollOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queue = 50
		network := linkedBy(t, 40*ms, simnet.Config{Loss: 0.1, Jitter: 5 * ms, Seed: 21})
		journal := uplinktest.NewJournal(t, 1)
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, QueueBytes: queue * moveBytes, DeliverLate: true}, handles("Move", journal.Handle))
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		first := uint64(0)
		for _, n := range []int{200, 20, 300, 40} {
			play(t, move, 1, first, n, 60)
			first += uint64(n)
			settle(time.Second)
			// Redundant frames of the previous stretch may arrive with the first of this one.
			if got, want := srv.Poll(), min(n, queue); got > min(n+rpcdelta.MaxRedundancy, queue) || got < want*6/10 {
				t.Errorf("%d frames sent, %d polled", n, got)
			}
		}
		log, got := journal.Only(), srv.Stats().RPCs[0]
		if full := got.Drops[ds.QueueFull]; full < 300 || full > 420 {
			t.Errorf("%d payloads dropped as %v", full, ds.QueueFull)
		}
		if log.Frames()+log.Missed != log.Next || got.Frames() != log.Frames() || got.LateFrames != log.Late {
			t.Errorf("%d frames delivered, %d late, %d missed of %d; counted %+v", log.Frames(), log.Late, log.Missed, log.Next, got)
		}
		// The server knows of frames after the last that was delivered, too.
		if sum := got.Frames() + got.Missed; sum < log.Next || sum > first || got.Missed < log.Missed {
			t.Errorf("%d delivered and %d missed are counted, %d were sent", got.Frames(), got.Missed, first)
		}
	})
}

// TestPollKeepsBytes verifies that values do not change while more frames arrive.
func TestPollKeepsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 20*ms, simnet.Config{Seed: 22})
		journal := uplinktest.NewJournal(t, 1)
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true}, handles("Move", func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
			payload := slices.Clone(f.Value.Payload)
			time.Sleep(7 * ms)
			if !slices.Equal(payload, f.Value.Payload) {
				t.Errorf("frame %d changed while its handler ran", f.Seq)
			}
			journal.Handle(p, f)
		}))
		move := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")
		done := make(chan struct{})
		go func() {
			defer close(done)
			play(t, move, 1, 0, 1000, 60)
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(200 * ms):
			}
			srv.Poll()
		}
		settle(time.Second)
		srv.Poll()
		if n := journal.Only().Frames(); n != 1000 {
			t.Errorf("%d frames came", n)
		}
	})
}

// TestPollAfterPanic ends Poll while a handler runs, by a panic of PanicHandler that the game
// recovers and by runtime.Goexit. The next Poll continues with the rest of the queue and of jitter
// buffers, and then handles what arrived later.
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
	ended := false
	var culprit *ds.Player
	handle := func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
		got[p] = append(got[p], f.Seq)
		if ended || f.Seq != frames-1 {
			return
		}
		ended, culprit = true, p
		if exits {
			runtime.Goexit()
		}
		panic("a bug in the game")
	}
	srv := uplinktest.Serve(t, network, ds.Config{
		Poll: true, Logger: slog.New(slog.DiscardHandler),
		PanicHandler: func(_ *ds.Player, v any, _ []byte) {
			if v != nil {
				panic(v)
			}
		},
	}, func(s *ds.Server) error {
		return errors.Join(ds.Handle(s, "Move", handle), ds.Handle(s, "Buffered", handle), s.SetJitterBuffer("Buffered", &ds.JitterBuffer{Depth: 50 * ms}))
	})
	poll := func() (n int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			n = -1
			n = srv.Poll()
		}()
		<-done
		return n
	}
	var streams []*client.Stream[uplinktest.Move]
	for range players {
		streams = append(streams, uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), rpc))
	}
	tick := func(i uint64) {
		for _, s := range streams {
			m := uplinktest.MoveAt(1, i)
			if err := s.Send(&m); err != nil && !ended { // one of them is kicked then
				t.Error(err)
			}
		}
		settle(time.Second / 60)
	}
	last := uint64(frames)
	for i := range last {
		tick(i)
		if rpc == "Buffered" {
			poll()
		}
	}
	for poll() >= 0 && !ended { // the buffers release the rest
		settle(time.Second / 60)
	}
	if n := len(got); !ended || n == 0 {
		t.Fatalf("no Poll ended before its time, of %d players frames came", n)
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
	if n := whole(); n == players {
		t.Fatal("the Poll that did not return has delivered all")
	}
	tick(last)
	poll()
	if n := whole(); n != players {
		t.Errorf("after the next Poll %d of %d players' frames have come: %v", n, players, got)
	}
	for p, seqs := range got { // one tick more for all but the one whose handler did not return, so that none falls behind
		want := frames + 1
		if p == culprit {
			want = frames
		}
		if len(seqs) != want {
			t.Errorf("%d frames of a player have come, want %d: %v", len(seqs), want, got)
		}
	}
	if n := srv.Stats().Panics; n != 1 {
		t.Errorf("%d panics", n)
	}
}

// TestShutdownAfterPanic verifies that Shutdown waits for another Poll if the last one did not
// return.
func TestShutdownAfterPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		var handled int
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, Logger: slog.New(slog.DiscardHandler)}, handles("Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {
			if handled++; handled == 1 {
				runtime.Goexit()
			}
		}))
		for range 2 {
			conn := uplinktest.Dial(t, network, client.Config{NoReconnect: true})
			play(t, uplinktest.Bind(t, conn, "Move"), 1, 0, 1, 60)
			settle(100 * ms)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			srv.Poll()
		}()
		<-done
		down := make(chan error, 1)
		go func() { down <- srv.Shutdown(t.Context()) }()
		settle(10 * time.Second)
		select {
		case err := <-down:
			t.Errorf("the server is down (%v) after %d handlers", err, handled)
		default:
		}
		srv.Poll()
		settle(time.Second)
		if handled != 2 {
			t.Errorf("%d handlers ran", handled)
		}
		uplinktest.Must(t, <-down)
	})
}

// TestPollAfterEnd verifies that Poll calls Left for the players that remain when the server is
// closed.
func TestPollAfterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		joined, left := 0, 0
		srv := uplinktest.Serve(t, network, ds.Config{
			Poll: true, Joined: func(*ds.Player) { joined++ }, Left: func(*ds.Player, error) { left++ },
		}, func(*ds.Server) error { return nil })
		for range 3 {
			uplinktest.Dial(t, network, client.Config{})
		}
		settle(time.Second)
		uplinktest.Must(t, srv.Close())
		if n := srv.Poll(); n != 6 || joined != 3 || left != 3 {
			t.Errorf("%d handlers ran, %d joined, %d left", n, joined, left)
		}
	})
}
