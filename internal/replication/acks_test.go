package replication

import (
	"bytes"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
)

// TestAcksInFront checks that acks precede another message of the client if there is room, and wait
// for one while it is expected.
func TestAcksInFront(t *testing.T) {
	const tick = time.Second / 60
	p := newPair(t).subscribe()
	p.toServer.Keep = true
	// next delivers a snapshot, then sends a message, and returns its datagram.
	next := func(message []byte) (sent []byte, datagrams int) {
		p.now = p.now.Add(tick)
		p.toServer.Sent = nil
		p.deliver(p.snapshot())
		must(t, p.worlds.SendWithAcks(message, p.now))
		return p.toServer.Last, len(p.toServer.Sent)
	}
	msg := []byte{1, 2, 3}
	for range 2 { // the first datagrams of either kind
		next(msg)
	}
	for n := range 10 {
		sent, datagrams := next(msg)
		ack, rest := message.CutDownAck(sent[1:])
		if datagrams != 1 || sent[0] != byte(message.DownAck) || !bytes.Equal(rest, msg) || len(sent) > len(msg)+6 {
			t.Fatalf("%d datagrams, the last is %x", datagrams, sent)
		}
		must(t, p.replicas.HandleAck(ack, p.now))
		if st := p.replica.Stats(); st.Acked != uint64(n+3) {
			t.Errorf("%d snapshots are acked, want %d", st.Acked, n+3)
		}
	}
	large := make([]byte, transport.MaxPayload-4)
	if sent, datagrams := next(large); datagrams != 1 || !bytes.Equal(sent, large) {
		t.Errorf("%d datagrams, the last of %d bytes", datagrams, len(sent))
	}
	must(t, p.worlds.SendWithAcks(msg, p.now))
	if sent := p.toServer.Last; len(sent) == len(msg) {
		t.Error("an ack that did not fit was forgotten")
	}

	p.deliver(p.snapshot())
	for i, want := range []int{0, 1, 0} { // the ack rate, then two intervals without a message
		p.toServer.Sent = nil
		at := p.toServer.Woken
		if wait := at.Sub(p.now); wait != time.Duration(min(i+1, 2))*Interval(60) {
			t.Errorf("woken after %v", wait)
		}
		if p.worlds.Tick(at); len(p.toServer.Sent) != want {
			t.Errorf("%d datagrams of acks after %v, want %d", len(p.toServer.Sent), at.Sub(p.now), want)
		}
	}
	st := p.sub.Stats()
	if st.Acks != 14 || st.AckBytes > 6*st.Acks {
		t.Errorf("%d acks of %d bytes", st.Acks, st.AckBytes)
	}
}

// TestAcksPay checks that an ack leaves alone if waiting would cost more.
func TestAcksPay(t *testing.T) {
	p := newPair(t).subscribe()
	p.worlds.acks.carriers.Left(p.now.Add(-100*time.Millisecond), time.Second)
	p.worlds.acks.carriers.Left(p.now, time.Second)
	a := &p.sub.feed.ack
	a.sent = p.now.Add(-50 * time.Millisecond)
	for _, c := range []struct {
		size int
		want uint64 // acks
	}{{50, 0}, {5000, 1}} {
		p.worlds.acks.put(a, []byte{byte(message.DownAck), 3, 0, 0, 0}, c.size, p.now)
		if n := p.sub.Stats().Acks; n != c.want {
			t.Errorf("%d acks after messages of %d bytes, want %d", n, c.size, c.want)
		}
	}
}

// TestSendWithAcksAllocs checks that acks in front of messages allocate nothing.
func TestSendWithAcksAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	p := newPair(t).subscribe()
	msg := make([]byte, 30)
	ack := []byte{byte(message.DownAck), 3, 0, 0, 0}
	one := func() {
		p.now = p.now.Add(time.Second / 60)
		p.worlds.acks.put(&p.sub.feed.ack, ack, 100, p.now)
		must(t, p.worlds.SendWithAcks(msg, p.now))
	}
	for range 5 {
		one()
	}
	if n := allocs.PerRun(100, one); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
	if len(p.toServer.Last) != len(msg)+len(ack) {
		t.Errorf("sent %x", p.toServer.Last)
	}
}
