package transport

import (
	"fmt"
	"testing"

	"github.com/uplink-rpc/uplink/transport/internal/session"
)

// handling is a handler that notes how many datagrams it had, and the listener had counted, when a
// batch was over.
type handling struct {
	calls
	l       *Listener
	handled int
	had     int
	counted uint64
}

func (h *handling) Handled() {
	h.handled++
	h.had, h.counted = h.datagrams, h.l.Stats().DatagramsReceived
}

// TestPublish: what a batch has brought is counted when it is over, all of it, and the handler
// hears of that after it.
func TestPublish(t *testing.T) {
	d := newTestListener(t, Config{})
	h := &handling{l: d.Listener}
	d.handler = h
	g := d.visit(t, clientAddr, 0).open()
	d.endBatch()
	before, handled := d.Listener.Stats(), h.handled
	const count = 3
	for range count {
		if err := g.Send([]byte("call")); err != nil {
			t.Fatal(err)
		}
		d.receive(clientAddr, g.out[len(g.out)-1])
	}
	d.receive(clientAddr, []byte{0xff})
	if st := d.Listener.Stats(); st.DatagramsReceived != before.DatagramsReceived {
		t.Errorf("%d datagrams counted within the batch", st.DatagramsReceived-before.DatagramsReceived)
	}
	d.endBatch()
	st := d.Listener.Stats()
	if n := st.DatagramsReceived - before.DatagramsReceived; n != count+1 || st.Dropped.Malformed != before.Dropped.Malformed+1 {
		t.Errorf("%d datagrams counted, want %d; dropped: %+v", n, count+1, st.Dropped)
	}
	if h.handled != handled+1 || h.had != count || h.counted != st.DatagramsReceived {
		t.Errorf("%+v", h)
	}
}

func TestEndsAreCounted(t *testing.T) {
	var st ListenerStats
	for _, cause := range []error{ErrProtocol, fmt.Errorf("of a shard: %w", session.ErrUnacknowledged), session.ErrUnacknowledged, ErrTimeout, nil} {
		st.ended(cause)
	}
	if st.ProtocolErrors != 1 || st.Unacknowledged != 2 {
		t.Errorf("%d protocol errors and %d unacknowledged, want 1 and 2", st.ProtocolErrors, st.Unacknowledged)
	}
}
