package ds_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// letter returns message n: its number, and more bytes for some.
func letter(n uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, n)
	return append(b, bytes.Repeat([]byte{byte(n)}, int(n*n%700))...)
}

// letters verifies that messages arrive in order and without gaps.
type letters struct {
	t    *testing.T
	mu   sync.Mutex
	next uint32
}

func (l *letters) take(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !bytes.Equal(b, letter(l.next)) {
		l.t.Errorf("message %d is %d bytes: %.4x", l.next, len(b), b)
	}
	l.next++
}

func (l *letters) count() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// TestMessages sends messages both ways over a bad link, and calls RPCs on both channels.
func TestMessages(t *testing.T) {
	for _, poll := range []bool{false, true} {
		bubble(t, fmt.Sprintf("poll=%v", poll), func(t *testing.T) { checkMessages(t, poll) })
	}
}

func checkMessages(t *testing.T, poll bool) {
	network := linkedBy(t, 80*ms, simnet.Config{Loss: 0.2, Burst: 3, Jitter: 10 * ms, Duplicate: 0.1, Seed: 60})
	toServer, toClient := &letters{t: t}, &letters{t: t}
	moves, fires := uplinktest.NewJournal(t, 1), uplinktest.NewJournal(t, 2)
	polling := false
	var player *ds.Player
	cfg := ds.Config{Poll: poll, Joined: func(p *ds.Player) { player = p }, OnMessage: func(p *ds.Player, b []byte) {
		if p != player || poll && !polling {
			t.Error("a message of another player, or outside of Poll")
		}
		toServer.take(b)
	}}
	srv := uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
		return errors.Join(ds.Handle(s, "Move", moves.Handle), ds.Handle(s, "Fire", fires.Handle))
	})
	conn := uplinktest.Dial(t, network, client.Config{OnMessage: toClient.take})
	move, fire := uplinktest.Bind(t, conn, "Move"), uplinktest.Bind(t, conn, "Fire", client.BindConfig{Reliable: true})
	tick := func() {
		time.Sleep(time.Second / 60)
		synctest.Wait()
		polling = true
		srv.Poll()
		polling = false
	}
	tick()
	const messages = 400
	sent := [2]uint32{}
	for n := uint64(0); n < 1000; n++ {
		m, f := uplinktest.MoveAt(1, n), uplinktest.MoveAt(2, n)
		uplinktest.Must(t, errors.Join(move.Send(&m), fire.Send(&f)))
		for i, send := range []func([]byte) error{conn.SendReliable, player.SendReliable} {
			for range 2 {
				if sent[i] == messages {
					break
				}
				err := send(letter(sent[i]))
				if errors.Is(err, client.ErrBacklog) && errors.Is(err, ds.ErrBacklog) {
					break
				}
				uplinktest.Must(t, err)
				sent[i]++
			}
		}
		tick()
	}
	for range 300 {
		tick()
	}
	if got := [2]uint32{toServer.count(), toClient.count()}; sent != [2]uint32{messages, messages} || got != sent {
		t.Errorf("%v messages sent, %v came", sent, got)
	}
	if f := fires.Only(); f.Frames() != 1000 {
		t.Errorf("%d reliable frames", f.Frames())
	}
	if st := srv.Stats(); st.Drops != ([ds.InvalidAck + 1]uint64{}) || conn.Stats().Malformed != 0 {
		t.Errorf("drops %v, at the client %d", st.Drops, conn.Stats().Malformed)
	}
}

// TestMessageLimits verifies the errors of messages that are too long or too many, and that a
// client that sends as fast as it can is not disconnected after an outage.
func TestMessageLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{Delay: 10 * ms}, simnet.Config{Delay: 10 * ms})
		hold, taken := make(chan struct{}), 0
		var player *ds.Player
		srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { player = p }, OnMessage: func(*ds.Player, []byte) {
			if taken++; taken == 10 {
				<-hold
			}
		}}, func(*ds.Server) error { return nil })
		conn := uplinktest.Dial(t, network, client.Config{})
		settle(time.Second)
		if err := conn.SendReliable(make([]byte, client.MaxMessage+1)); err == nil || !strings.Contains(err.Error(), "8193 bytes") {
			t.Error(err)
		}
		if err := player.SendReliable(make([]byte, ds.MaxMessage+1)); err == nil || !strings.Contains(err.Error(), "8193 bytes") {
			t.Error(err)
		}
		sent := 0
		send := func(size int, d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * ms) {
				for {
					err := conn.SendReliable(make([]byte, size))
					if errors.Is(err, client.ErrBacklog) {
						break
					}
					uplinktest.Must(t, err)
					sent++
				}
			}
		}
		send(client.MaxMessage, 3*time.Second) // the server stands still soon
		send(0, 3*time.Second)
		close(hold)
		send(0, 5*time.Second)
		send(client.MaxMessage, 20*time.Second)
		settle(5 * time.Second)
		if taken != sent || sent < 5000 {
			t.Errorf("%d messages sent, %d came: %v", sent, taken, srv.Stats().Drops)
		}
		uplinktest.Must(t, conn.Close())
		settle(time.Second)
		if err := player.SendReliable(nil); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := conn.SendReliable(nil); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestHostileMessages verifies that messages are dropped on the wrong channel, and by a server
// without OnMessage.
func TestHostileMessages(t *testing.T) {
	besides(t, ds.Config{}, func(t *testing.T, srv *uplinktest.Server, r *raw, _ *schema.Schema) {
		r.say(control.AppendMessage(nil, []byte("hello")))
		uplinktest.Must(t, r.SendReliable(control.AppendMessage(nil, []byte("hello"))))
		settle(100 * ms)
		if malformed, unknown := dropped(srv); malformed != 1 || unknown != 1 {
			t.Errorf("%d malformed, %d unknown", malformed, unknown)
		}
	})
}
