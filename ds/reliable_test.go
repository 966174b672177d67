package ds_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// countReliable counts the datagrams of the reliable channel.
func countReliable(n *uplinktest.Network) *atomic.Int64 {
	var count atomic.Int64
	n.Watch(func(_, _ netip.AddrPort, b []byte) {
		if uplinktest.Kind(b) == uplinktest.ReliableKind {
			count.Add(1)
		}
	})
	return &count
}

// TestReliable calls a reliable and an unreliable RPC over a bad link.
func TestReliable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 80*ms, simnet.Config{Loss: 0.2, Jitter: 10 * ms, Duplicate: 0.1, Seed: 7})
		segments := countReliable(network)
		moves, fires := uplinktest.NewJournal(t, 1), uplinktest.NewJournal(t, 2)
		srv := uplinktest.Serve(t, network, ds.Config{}, func(s *ds.Server) error {
			return errors.Join(ds.Handle(s, "Move", moves.Handle), ds.Handle(s, "Fire", fires.Handle))
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		move := uplinktest.Bind(t, conn, "Move")
		fire := uplinktest.Bind(t, conn, "Fire", client.BindConfig{Reliable: true})
		play(t, move, 1, 0, 600, 60)
		if n := segments.Load(); n != 0 {
			t.Errorf("%d reliable datagrams though nothing reliable was sent", n)
		}
		const frames = 1200
		for n := range uint64(frames) {
			m, f := uplinktest.MoveAt(1, 600+n), uplinktest.MoveAt(2, n)
			uplinktest.Must(t, errors.Join(move.Send(&m), fire.Send(&f)))
			time.Sleep(time.Second / 60)
		}
		time.Sleep(5 * time.Second)
		if l := fires.Only(); l.Frames() != frames || l.Missed != 0 {
			t.Errorf("%d of %d reliable frames came, %d missed", l.Frames(), frames, l.Missed)
		}
		if l := moves.Only(); l.Frames() < 600 || l.Missed == 0 {
			t.Errorf("%d unreliable frames came, %d missed", l.Frames(), l.Missed)
		}
		sent, got := fire.Stats(), srv.Stats().RPCs[1]
		if !sent.Reliable || !got.Reliable || got.RPC != "Fire" || sent.Stats != got.Stats || sent.Bytes != got.Bytes || sent.Messages != got.Messages {
			t.Errorf("the ends count\n%+v\n%+v", sent, got)
		}
		if sent.Reset != 1 || sent.Delta < frames*9/10 || sent.AgeSum != sent.Delta {
			t.Errorf("not all are deltas from the frame before: %+v", sent.Stats)
		}
	})
}

type blob struct {
	N    uint32
	Data []byte `uplink:"max=8000"`
}

// TestReliableBacklog verifies that Send returns an error if the reliable channel is full, and that
// all accepted frames arrive.
func TestReliableBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(40*ms, simnet.Config{Seed: 8})
		network := uplinktest.NewNetwork(t, up, down)
		var got []uint32
		srv := uplinktest.Serve(t, network, ds.Config{}, handles("Blob", func(_ *ds.Player, f ds.Frame[blob]) {
			got = append(got, f.Value.N)
			if len(f.Value.Data) != 7000 || f.Missed != 0 {
				t.Errorf("frame %d: %d bytes, %d missed", f.Seq, len(f.Value.Data), f.Missed)
			}
		}))
		conn := uplinktest.Dial(t, network, client.Config{})
		s, err := client.Bind[blob](t.Context(), conn, "Blob", client.BindConfig{Reliable: true})
		uplinktest.Must(t, err)
		send := func(n uint32) error {
			data := make([]byte, 7000)
			for i := range data {
				data[i] = byte(uint32(i)*2654435761>>7 ^ n*uint32(i))
			}
			return s.Send(&blob{N: n, Data: data})
		}
		dead := simnet.Config{Loss: 1}
		refused := 0
		taken := uint32(0)
		for round := range 3 {
			uplinktest.Must(t, network.Set(dead, dead))
			for range 100 {
				switch err := send(taken); {
				case err == nil:
					taken++
				case errors.Is(err, transport.ErrBacklog):
					refused++
				default:
					t.Fatal(err)
				}
				time.Sleep(10 * ms)
			}
			uplinktest.Must(t, network.Set(up, down))
			settle(8 * time.Second)
			if len(got) != int(taken) {
				t.Errorf("round %d: %d of %d frames came", round, len(got), taken)
			}
			if err := send(taken); err != nil {
				t.Fatalf("round %d: the channel is still full: %v", round, err)
			}
			taken++
			settle(2 * time.Second)
		}
		if refused == 0 {
			t.Error("the channel was never full")
		}
		if len(got) != int(taken) {
			t.Errorf("%d of %d frames came; server: %+v", len(got), taken, srv.Stats().RPCs)
		}
		for i, n := range got {
			if n != uint32(i) {
				t.Fatalf("frame %d holds %d", i, n)
			}
		}
		if st := s.Stats(); st.Frames() != uint64(taken) {
			t.Errorf("%d frames counted as sent, want %d", st.Frames(), taken)
		}
	})
}

// TestReliableWithSlowAcks verifies that a low ack rate does not delay retransmissions of the
// reliable channel.
func TestReliableWithSlowAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 40*ms, simnet.Config{Loss: 0.2, Seed: 9})
		journal := uplinktest.NewJournal(t, 1)
		const hz = 30
		var start time.Time
		var took time.Duration // all frames together
		uplinktest.Serve(t, network, ds.Config{AckHz: 1}, handles("Fire", func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
			journal.Handle(p, f)
			took += f.Received.Sub(start) - time.Duration(f.Seq)*time.Second/hz
		}))
		fire := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Fire", client.BindConfig{Reliable: true})
		start = time.Now()
		const frames = 600
		play(t, fire, 1, 0, frames, hz)
		settle(3 * time.Second)
		if mean := took / frames; journal.Only().Frames() != frames || mean > 100*ms {
			t.Errorf("%d frames came, after %v in the mean", journal.Only().Frames(), mean)
		}
	})
}

// TestReliableTooLarge verifies that a frame that is too large for the channel is an error without
// further effect.
func TestReliableTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type huge struct {
			Data []byte `uplink:"max=12000"`
		}
		network := perfect(t)
		var got []int
		uplinktest.Serve(t, network, ds.Config{}, handles("Huge", func(_ *ds.Player, f ds.Frame[huge]) { got = append(got, len(f.Value.Data)) }))
		s, err := client.Bind[huge](t.Context(), uplinktest.Dial(t, network, client.Config{}), "Huge", client.BindConfig{Reliable: true})
		uplinktest.Must(t, err)
		noise := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 12000/7)
		uplinktest.Must(t, s.Send(&huge{Data: noise[:8000]}))
		if err := s.Send(&huge{Data: noise[1:]}); !errors.Is(err, rpcdelta.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		uplinktest.Must(t, s.Send(&huge{Data: noise[2:7002]}))
		settle(time.Second)
		if len(got) != 2 || got[0] != 8000 || got[1] != 7000 || s.Stats().TooLarge != 1 {
			t.Errorf("got %v", got)
		}
	})
}

// TestReliableOverflow verifies that a player is disconnected with a reason if one of its reliable
// frames does not fit into the queue.
func TestReliableOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queue = 8
		network := perfect(t)
		journal := uplinktest.NewJournal(t, 1)
		var left error
		srv := uplinktest.Serve(t, network, ds.Config{
			Poll: true, QueueBytes: queue * (moveBytes + 8), Left: func(_ *ds.Player, err error) { left = errors.Join(errors.New("left"), err) },
		}, func(s *ds.Server) error { return ds.Handle(s, "Fire", journal.Handle) })
		fire := uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Fire", client.BindConfig{Reliable: true})
		srv.Poll()
		var err error
		for n := range uint64(30) {
			m := uplinktest.MoveAt(1, n)
			if err = fire.Send(&m); err != nil {
				break
			}
			settle(50 * ms)
		}
		if !errors.Is(err, client.ErrKicked) || !strings.Contains(err.Error(), "too many frames wait") {
			t.Errorf("the client is told %v", err)
		}
		if n := srv.Poll(); n != queue+1 || left == nil {
			t.Errorf("%d handlers ran, left: %v", n, left)
		}
		if l := journal.Only(); l.Frames() != queue || l.Missed != 0 {
			t.Errorf("%d frames came, %d missed", l.Frames(), l.Missed)
		}
		if st := srv.Stats().RPCs[1]; st.Drops[ds.QueueFull] != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestHonestReliableCalls verifies that a client with reliable and unreliable calls does not
// violate the protocol, over a bad link and across restarts of the server.
func TestHonestReliableCalls(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 80*ms, simnet.Config{Loss: 0.2, Jitter: 30 * ms, Duplicate: 0.1, Seed: seed})
		var log record
		cfg := ds.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		journal := uplinktest.NewJournal(t, 1)
		serve := func() *uplinktest.Server {
			return uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
				return errors.Join(ds.Handle(s, "Fire", journal.Handle), ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {}))
			})
		}
		srv := serve()
		conn := uplinktest.Dial(t, network, client.Config{})
		move, fire := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Fire", client.BindConfig{Reliable: true})
		n := uint64(0)
		call := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 60) {
				m, f := uplinktest.MoveAt(2, n), uplinktest.MoveAt(1, n)
				if err := move.Send(&m); err != nil && !errors.Is(err, client.ErrReconnecting) {
					t.Fatal(err)
				}
				switch err := fire.Send(&f); {
				case err == nil:
					n++
				case errors.Is(err, client.ErrReconnecting):
					n = 0 // a new player
				default:
					t.Fatal(err)
				}
			}
		}
		for range 4 {
			call(3 * time.Second)
			network.Crash(t, uplinktest.Addr)
			<-srv.Served
			srv = serve()
			call(8 * time.Second)
			if malformed, unknown := dropped(srv); malformed+unknown != 0 || log.count("session ended") != 0 || n < 60 {
				t.Errorf("%d malformed, %d unknown, %d frames sent, log %s", malformed, unknown, n, log.buf.String())
			}
		}
	})
}
