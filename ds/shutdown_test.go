package ds_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestShutdown shuts a server down over bad links during traffic. All reliable data arrives both
// ways, and the client reconnects to the next server.
func TestShutdown(t *testing.T) {
	for _, poll := range []bool{false, true} {
		for seed := range uint64(4 / thin(2)) {
			bubble(t, fmt.Sprintf("poll=%v/seed=%d", poll, seed), func(t *testing.T) { checkShutdown(t, poll, seed) })
		}
	}
}

func checkShutdown(t *testing.T, poll bool, seed uint64) {
	network := linkedBy(t, 80*ms, simnet.Config{Loss: 0.3, Burst: 3, Jitter: 10 * ms, Seed: seed})
	toServer, toClient := &letters{t: t}, &letters{t: t}
	fires := uplinktest.NewJournal(t, 2)
	var player *ds.Player
	var left error
	moves := 0
	setup := func(s *ds.Server) error {
		return errors.Join(
			ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) { moves++ }), ds.Handle(s, "Fire", fires.Handle))
	}
	srv := uplinktest.Serve(t, network, ds.Config{
		Poll: poll, Joined: func(p *ds.Player) { player = p }, Left: func(_ *ds.Player, err error) { left = err },
		OnMessage: func(_ *ds.Player, b []byte) { toServer.take(b) },
	}, setup)
	game, stopGame := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		stopGame()
		<-ended // also after a failure: a bubble must not end before its goroutines
	})
	go func() {
		defer close(ended)
		for game.Err() == nil {
			srv.Poll()
			time.Sleep(10 * ms)
		}
	}()
	conn := uplinktest.Dial(t, network, client.Config{OnMessage: toClient.take})
	move, fire := uplinktest.Bind(t, conn, "Move", client.BindConfig{SendEvery: 2}), uplinktest.Bind(t, conn, "Fire", client.BindConfig{Reliable: true})
	sent, next := [2]uint32{}, uint64(0)
	play := func(d time.Duration) (err error) {
		for end := time.Now().Add(d); err == nil && time.Now().Before(end); time.Sleep(time.Second / 60) {
			m, f := uplinktest.MoveAt(1, next), uplinktest.MoveAt(2, next)
			if err = move.Send(&m); err != nil {
				return err
			}
			if err = fire.Send(&f); err == nil {
				next++
			} else if errors.Is(err, client.ErrBacklog) {
				err = nil // a long loss burst: the frame was not sent
			}
			if conn.SendReliable(letter(sent[0])) == nil {
				sent[0]++
			}
			if player.SendReliable(letter(sent[1])) == nil {
				sent[1]++
			}
		}
		return err
	}
	settle(time.Second)
	uplinktest.Must(t, play(5*time.Second))
	// The server's last messages are on their way now; it sends none any more.
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(t.Context()) }()
	player2 := player
	player = nil
	for err := error(nil); err == nil || errors.Is(err, client.ErrBacklog); time.Sleep(time.Second / 60) {
		f := uplinktest.MoveAt(2, next)
		if err = fire.Send(&f); err == nil {
			next++
		} else if !errors.Is(err, client.ErrReconnecting) && !errors.Is(err, client.ErrBacklog) {
			t.Error(err)
		}
		if conn.SendReliable(letter(sent[0])) == nil {
			sent[0]++
		}
	}
	if err := conn.SendReliable(nil); !errors.Is(err, client.ErrReconnecting) {
		t.Error(err)
	}
	uplinktest.Must(t, <-done)
	uplinktest.Must(t, <-srv.Served)
	settle(time.Second)
	if f := fires.Only(); f.Frames() != next {
		t.Errorf("%d reliable frames sent, %d came", next, f.Frames())
	}
	if got := [2]uint32{toServer.count(), toClient.count()}; got != sent || sent[1] < 200 {
		t.Errorf("%v messages sent, %v came", sent, got)
	}
	// All copies of the client's close can be lost.
	if !errors.Is(left, transport.ErrClosedByPeer) && !errors.Is(left, transport.ErrTimeout) || player != nil || player2 == nil || moves == 0 {
		t.Errorf("left with %v", left)
	}
	stopGame()
	<-ended

	srv = uplinktest.Serve(t, network, ds.Config{}, setup)
	settle(10 * time.Second)
	m := uplinktest.MoveAt(1, 0)
	uplinktest.Must(t, move.Send(&m))
	uplinktest.Must(t, move.Flush())
}

// TestShutdownCut verifies that Shutdown waits for players no longer than its context, and refuses
// new ones meanwhile.
func TestShutdownCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		joined, left := 0, 0
		srv := uplinktest.Serve(t, network, ds.Config{Joined: func(*ds.Player) { joined++ }, Left: func(*ds.Player, error) { left++ }}, func(*ds.Server) error { return nil })
		var told leaver
		_, err := transport.Dial(t.Context(), uplinktest.Addr, transport.Config{Network: network}, &told)
		uplinktest.Must(t, err)
		settle(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- srv.Shutdown(ctx) }()
		settle(time.Second)
		// Shaking hands is all that one more can do, if Dial does not see the end of it already.
		late, err := client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: network})
		if err == nil {
			settle(time.Second)
			err = errors.Join(late.SendReliable(nil), late.Close())
		}
		if !errors.Is(err, client.ErrReconnecting) && !errors.Is(err, client.ErrShutdown) {
			t.Errorf("a player is let in: %v", err)
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		settle(time.Second)
		if joined != 1 || left != 1 || told.times < 30 || !errors.Is(told.closed, transport.ErrPeerShutdown) {
			t.Errorf("%d joined, %d left, told %d times: %v", joined, left, told.times, told.closed)
		}
		uplinktest.Must(t, srv.Shutdown(t.Context())) // again

		idle, err := ds.Listen("127.0.0.1:7778", ds.Config{Network: network})
		uplinktest.Must(t, errors.Join(err, idle.Shutdown(t.Context())))
	})
}

// leaver is a client that counts the requests to leave and stays.
type leaver struct {
	unheard
	times  int
	closed error
}

func (l *leaver) Closed(_ *transport.Conn, err error) { l.closed = err }
func (l *leaver) Datagram(_ *transport.Conn, b []byte, _ time.Time) {
	if len(b) == 1 && b[0] == 0xc5 {
		l.times++
	}
}
