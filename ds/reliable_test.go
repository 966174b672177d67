package ds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestShutdown sends messages both ways over bad links, calls RPCs on both channels, and shuts the
// server down meanwhile. All reliable data arrives both ways, and the client reconnects to the next
// server.
func TestShutdown(t *testing.T) {
	for _, poll := range []bool{false, true} {
		for seed := range uint64(4 / thin(2)) {
			bubble(t, fmt.Sprintf("poll=%v/seed=%d", poll, seed), func(t *testing.T) { checkShutdown(t, poll, seed) })
		}
	}
}

func checkShutdown(t *testing.T, poll bool, seed uint64) {
	network := linkedBy(t, 80*ms, simnet.Config{Loss: 0.3, Burst: 3, Jitter: 10 * ms, Duplicate: 0.1, Seed: seed})
	toServer, toClient := &letters{t: t}, &letters{t: t}
	moves, fires := uplinktest.NewJournal(t, 1), uplinktest.NewJournal(t, 2)
	var player *ds.Player
	var left error
	var running atomic.Bool // a Poll, if the server needs one
	running.Store(!poll)
	srv := serve(t, network, ds.Config{
		Poll: poll, Joined: func(p *ds.Player) { player = p }, Left: func(_ *ds.Player, err error) { left = err },
		OnMessage: func(p *ds.Player, b []byte) {
			if p != player || !running.Load() {
				t.Error("a message of another player, or outside of Poll")
			}
			toServer.take(b)
		},
	}, handles("Move", moves.Handle), handles("Fire", fires.Handle))
	stop := polling(t, 10*ms, func() {
		running.Store(true)
		srv.Poll()
		running.Store(!poll)
	})
	conn := uplinktest.Dial(t, network, client.Config{OnMessage: toClient.take})
	move, fire := uplinktest.Bind(t, conn, "Move", client.BindConfig{Delay: uplinktest.Wait(1, 60)}), uplinktest.Bind(t, conn, "Fire", reliably)
	settle(time.Second)
	sent, next := [2]uint32{}, uint64(0)
	call := func() error {
		m, f := uplinktest.MoveAt(1, next), uplinktest.MoveAt(2, next)
		if conn.SendReliable(numberedMessage(sent[0])) == nil {
			sent[0]++
		}
		switch _, err := fire.Send(&f); {
		case err == nil:
			next++
			return uplinktest.Sent(move.Send(&m))
		case !errors.Is(err, transport.ErrBacklog): // else a long loss burst: the frame was not sent
			return err
		}
		return nil
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Second / 60) {
		uplinktest.Must(t, call())
		if player.SendReliable(numberedMessage(sent[1])) == nil {
			sent[1]++
		}
	}
	// The server's last messages are on their way now; it sends none any more.
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(t.Context()) }()
	err := error(nil)
	for ; err == nil; time.Sleep(time.Second / 60) {
		err = call()
	}
	if !errors.Is(err, client.ErrReconnecting) || !errors.Is(conn.SendReliable(nil), client.ErrReconnecting) {
		t.Error(err)
	}
	uplinktest.Must(t, errors.Join(<-done, <-srv.Served))
	settle(time.Second)
	if f := fires.Only(); f.Frames() != next || moves.Only().Frames() == 0 {
		t.Errorf("%d reliable frames sent, %d came, of the others %d", next, f.Frames(), moves.Only().Frames())
	}
	if got := [2]uint32{toServer.count(), toClient.count()}; got != sent || sent[1] < 200 {
		t.Errorf("%v messages sent, %v came", sent, got)
	}
	st, here, there := srv.Stats(), fire.Stats(), srv.Stats().RPCs[1]
	if !here.Reliable || !there.Reliable || there.RPC != "Fire" || here.Stats != there.Stats || here.Bytes != there.Bytes || here.Messages != there.Messages {
		t.Errorf("the ends count\n%+v\n%+v", here, there)
	}
	if here.Reset != 1 || here.Delta < next*9/10 || here.AgeSum != here.Delta {
		t.Errorf("not all are deltas from the frame before: %+v", here.Stats)
	}
	if st.Drops != ([len(st.Drops)]uint64{}) || conn.Stats().Malformed != 0 {
		t.Errorf("drops %v, at the client %d", st.Drops, conn.Stats().Malformed)
	}
	// All copies of the client's close can be lost.
	if !errors.Is(left, transport.ErrShutdown) && !errors.Is(left, transport.ErrTimeout) {
		t.Errorf("left with %v", left)
	}
	stop()

	serve(t, network, ds.Config{}, ignores("Move"), ignores("Fire"))
	settle(10 * time.Second)
	send(t, move, 1, 0)
	uplinktest.Must(t, move.Flush())
}

// TestShutdownCut verifies that Shutdown waits for players no longer than its context, and refuses
// new ones meanwhile.
func TestShutdownCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		joined, left := 0, 0
		srv := serve(t, network, ds.Config{Joined: func(*ds.Player) { joined++ }, Left: func(*ds.Player, error) { left++ }})
		stays := dialRaw(t, network)
		settle(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- srv.Shutdown(ctx) }()
		settle(time.Second)
		if _, err := client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: network}); !errors.Is(err, transport.ErrDraining) {
			t.Errorf("a player is let in: %v", err)
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		settle(time.Second)
		if joined != 1 || left != 1 || stays.leaves < 30 || !errors.Is(stays.closed, transport.ErrShutdown) {
			t.Errorf("%d joined, %d left, told %d times: %v", joined, left, stays.leaves, stays.closed)
		}
		uplinktest.Must(t, srv.Shutdown(t.Context())) // again

		idle, err := ds.Listen("127.0.0.1:7778", ds.Config{Network: network})
		uplinktest.Must(t, errors.Join(err, idle.Shutdown(t.Context())))
	})
}

// TestMessageLimits verifies the errors of messages and frames that are too long or too many, and
// that a client that sends as fast as it can is not disconnected after an outage: all that was
// accepted arrives.
func TestMessageLimits(t *testing.T) {
	measures(t)
	type blob struct {
		N    uint32
		Data []byte `uplink:"max=12000"`
	}
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 20*ms, simnet.Config{})
		hold, taken, blobs := make(chan struct{}), 0, uint32(0)
		var player *ds.Player
		srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) { player = p }, OnMessage: func(*ds.Player, []byte) {
			if taken++; taken == 10 {
				<-hold
			}
		}}, handles("Blob", func(_ *ds.Player, f ds.Frame[blob]) {
			if f.Value.N != blobs || len(f.Value.Data) != 7000 || f.Missed != 0 {
				t.Errorf("frame %d is blob %d of %d bytes, want %d; %d missed", f.Seq, f.Value.N, len(f.Value.Data), blobs, f.Missed)
			}
			blobs++
		}))
		conn := uplinktest.Dial(t, network, client.Config{})
		s, err := client.Bind[blob](t.Context(), conn, "Blob", reliably)
		uplinktest.Must(t, err)
		for _, send := range []func([]byte) error{conn.SendReliable, player.SendReliable} {
			if err := send(make([]byte, ds.MaxMessage+1)); err == nil || !strings.Contains(err.Error(), "8193 bytes") {
				t.Error(err)
			}
		}
		noise := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 12000/7)
		sent, accepted, refused := 0, uint32(0), 0
		full := func(err error) bool {
			if !errors.Is(err, transport.ErrBacklog) {
				uplinktest.Must(t, err)
			}
			return err != nil
		}
		messages := func(size int, d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * ms) {
				if full(uplinktest.Sent(s.Send(&blob{accepted, noise[accepted%4000:][:7000]}))) {
					refused++
				} else {
					accepted++
				}
				for !full(conn.SendReliable(make([]byte, size))) {
					sent++
				}
			}
		}
		if _, err := s.Send(&blob{Data: noise}); !errors.Is(err, rpcdelta.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		messages(client.MaxMessage, 3*time.Second) // the server stands still soon
		messages(0, 3*time.Second)
		close(hold)
		messages(0, 5*time.Second)
		messages(client.MaxMessage, 20*time.Second)
		settle(5 * time.Second)
		if st := s.Stats(); taken != sent || sent < 5000 || blobs != accepted || accepted < 2 || refused == 0 || st.Frames() != uint64(accepted) {
			t.Errorf("%d messages sent, %d came; %d blobs sent, %d refused, %d came: %v", sent, taken, accepted, refused, blobs, srv.Stats().Drops)
		}
		uplinktest.Must(t, conn.Close())
		settle(time.Second)
		if err := errors.Join(player.SendReliable(nil), conn.SendReliable(nil)); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestReliableWithSlowAcks verifies that a low ack rate does not delay retransmissions of the
// reliable channel.
func TestReliableWithSlowAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hz, frames = 30, 600
		network := linkedBy(t, 40*ms, simnet.Config{Loss: 0.2, Seed: 9})
		journal := uplinktest.NewJournal(t, 1)
		var start time.Time
		var took time.Duration // all frames together
		serve(t, network, ds.Config{Tuning: ds.Tuning{AckHz: 1}}, handles("Fire", func(p *ds.Player, f frame) {
			journal.Handle(p, f)
			took += f.Received.Sub(start) - time.Duration(f.Seq)*time.Second/hz
		}))
		fire := join(t, network, "Fire", reliably)
		start = time.Now()
		play(t, fire, 1, 0, frames, hz)
		settle(3 * time.Second)
		if mean := took / frames; journal.Only().Frames() != frames || mean > 100*ms {
			t.Errorf("%d frames came, after %v in the mean", journal.Only().Frames(), mean)
		}
	})
}

// TestHonestReliableCalls verifies that a client with reliable and unreliable calls does not
// violate the protocol, over a bad link and across restarts of the server.
func TestHonestReliableCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 80*ms, simnet.Config{Loss: 0.2, Jitter: 30 * ms, Duplicate: 0.1, Seed: 21})
		var log uplinktest.Record
		journal := uplinktest.NewJournal(t, 1)
		restart := func() *uplinktest.Server {
			return serve(t, network, ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, handles("Fire", journal.Handle), ignores("Move"))
		}
		srv := restart()
		conn := uplinktest.Dial(t, network, client.Config{})
		move, fire := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Fire", reliably)
		n := uint64(0)
		call := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 60) {
				m, f := uplinktest.MoveAt(2, n), uplinktest.MoveAt(1, n)
				if n++; errors.Is(uplinktest.Sent(fire.Send(&f)), client.ErrReconnecting) {
					n = 0 // a new player
				}
				_, _ = move.Send(&m)
			}
		}
		for range 4 {
			call(3 * time.Second)
			network.Crash(t, uplinktest.Addr)
			<-srv.Served
			srv = restart()
			call(8 * time.Second)
			if malformed, unknown := dropped(srv); malformed+unknown != 0 || log.Count("session ended") != 0 || n < 60 {
				t.Errorf("%d malformed, %d unknown, %d frames sent, log %s", malformed, unknown, n, log.String())
			}
		}
	})
}

type nameTag struct {
	ID   uint16
	Name string `uplink:"max=24"`
}

// TestReliableQueue makes 3,000 small reliable calls in Joined, which are less than 256 KiB: all
// arrive. Then messages fill the queue, whose error names the limit, and a goroutine waits for room
// again and again: all of its messages arrive too.
func TestReliableQueue(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const calls, messages = 3000, 200
		network := linkedBy(t, 120*ms, simnet.Config{})
		joined := make(chan *ds.Player, 1)
		serve(t, network, ds.Config{Joined: func(p *ds.Player) {
			s, err := ds.Bind[nameTag](p, "Label", ds.BindConfig{Reliable: true})
			uplinktest.Must(t, err)
			for i := range uint16(calls) {
				uplinktest.Must(t, uplinktest.Sent(s.Send(&nameTag{i, "player"})))
			}
			joined <- p
		}})
		var handlers client.Handlers
		var called, received atomic.Int64
		uplinktest.Must(t, client.Handle(&handlers, "Label", func(c client.Call[nameTag]) {
			if int64(c.Value.ID) != called.Add(1)-1 {
				t.Errorf("call %d arrived as number %d", c.Value.ID, called.Load())
			}
		}))
		uplinktest.Dial(t, network, client.Config{Handlers: &handlers, OnMessage: func([]byte) { received.Add(1) }})
		p := <-joined
		settle(30 * time.Second)
		if n := called.Load(); n != calls {
			t.Fatalf("%d of %d calls arrived", n, calls)
		}

		sent := int64(0)
		var err error
		for err == nil {
			if err = p.SendReliable(make([]byte, 8000)); err == nil {
				sent++
			}
		}
		if sent != 256<<10/8003 || !errors.Is(err, transport.ErrBacklog) || !strings.Contains(err.Error(), "262144") {
			t.Errorf("%d messages of 8,000 bytes, then %v", sent, err)
		}
		if n := p.ReliableRoom(); n >= 8000 {
			t.Errorf("room for %d bytes", n)
		}
		for range messages {
			uplinktest.Must(t, p.WaitReliable(t.Context(), 8000))
			uplinktest.Must(t, p.SendReliable(make([]byte, 8000)))
			sent++
		}
		settle(10 * time.Second)
		if n := received.Load(); n != sent {
			t.Errorf("%d of %d messages arrived", n, sent)
		}
		if n := p.ReliableRoom(); n != ds.MaxMessage {
			t.Errorf("room for %d bytes at last", n)
		}
	})
}

// TestReliableQueueOfServer: players share a limit. A context ends the wait for room.
func TestReliableQueueOfServer(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := linkedBy(t, 120*ms, simnet.Config{})
		joined := make(chan *ds.Player, 2)
		serve(t, network, ds.Config{Limits: ds.Limits{ReliableQueue: 64 << 10, TotalReliableQueue: 100_000}, Joined: func(p *ds.Player) { joined <- p }})
		var players []*ds.Player
		for range 2 {
			uplinktest.Dial(t, network, client.Config{})
			players = append(players, <-joined)
		}
		var errs []error
		for _, p := range players {
			var err error
			for err == nil {
				err = p.SendReliable(make([]byte, 8000))
			}
			errs = append(errs, err)
		}
		if !strings.Contains(errs[0].Error(), "65536") || !strings.Contains(errs[1].Error(), "100000") {
			t.Errorf("the limits are not named: %v", errs)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
		defer cancel()
		if err := players[1].WaitReliable(ctx, 8000); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, transport.ErrBacklog) {
			t.Errorf("got %v", err)
		}
		uplinktest.Must(t, players[1].WaitReliable(t.Context(), 8000))
		players[0].Kick("")
		settle(time.Second)
		if err := players[0].WaitReliable(t.Context(), 8000); err == nil {
			t.Error("no error after the end of the session")
		}
	})
}

// TestReliableQueueOfClient: a client waits for room, which the rate limit of its messages leaves.
func TestReliableQueueOfClient(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const messages = 60
		network := linkedBy(t, 120*ms, simnet.Config{})
		var received atomic.Int64
		serve(t, network, ds.Config{OnMessage: func(*ds.Player, []byte) { received.Add(1) }})
		conn := uplinktest.Dial(t, network, client.Config{})
		for range messages {
			uplinktest.Must(t, conn.WaitReliable(t.Context(), 8000))
			uplinktest.Must(t, conn.SendReliable(make([]byte, 8000)))
		}
		if n := conn.ReliableRoom(); n >= 8000 {
			t.Errorf("room for %d bytes", n)
		}
		settle(5 * time.Second)
		if n := received.Load(); n != messages {
			t.Errorf("%d of %d messages arrived", n, messages)
		}
	})
}
