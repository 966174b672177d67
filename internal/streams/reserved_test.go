package streams

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// exchange passes all messages between two ends, and ends the test if one is refused.
func exchange(t *testing.T, a, b *end) {
	t.Helper()
	for {
		n := 0
		for _, pair := range [2][2]*end{{a, b}, {b, a}} {
			for m := pair[0].Next(nil, maxData); len(m) > 0; m = pair[0].Next(nil, maxData) {
				n++
				if err := pair[1].Deliver(time.Now(), m); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n == 0 {
			return
		}
	}
}

// TestReserved sends streams with a reserved name. The reader gets the data as a whole, and decides
// later what the writer learns.
func TestReserved(t *testing.T) {
	for _, size := range []int{0, 1, maxData, Window} {
		for _, complete := range []bool{true, false} {
			a, b := newEnd(), newEnd()
			sent := bytes.Repeat([]byte{7}, size)
			results := []error{}
			over := func(err error) { results = append(results, err) }
			if _, err := a.SendReserved(time.Now(), "uplink.test", sent, over); err != nil {
				t.Fatal(err)
			}
			exchange(t, a, b)
			if len(b.whole) != 1 || !bytes.Equal(b.whole[0].data, sent) || b.whole[0].err != nil || len(results) > 0 || !a.Busy() || !b.Busy() {
				t.Fatalf("%d bytes: received %d streams, results %v", size, len(b.whole), results)
			}
			b.whole[0].Finish(complete)
			exchange(t, a, b)
			if len(results) != 1 || (results[0] == nil) != complete || !complete && !errors.Is(results[0], transport.ErrStreamAborted) || a.Busy() || b.Busy() {
				t.Errorf("%d bytes, complete %v: results %v", size, complete, results)
			}
		}
	}
}

// TestReservedEnds sends streams with reserved names that the reader does not know, that are
// aborted, and whose session ends.
func TestReservedEnds(t *testing.T) {
	send := func(a *end, name string, result *error) *Writer {
		w, err := a.SendReserved(time.Now(), name, make([]byte, 10), func(err error) { *result = err })
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	a, b := newEnd(), newEnd()
	var unknown, aborted, lost error
	send(a, "uplink.other", &unknown)
	exchange(t, a, b)
	send(a, "uplink.test", &aborted).Abort("why")
	exchange(t, a, b)
	if !errors.Is(unknown, transport.ErrUnhandled) || len(b.whole) != 1 || !errors.Is(b.whole[0].err, transport.ErrStreamAborted) {
		t.Fatalf("unknown %v, received %v", unknown, b.whole)
	}
	b.whole[0].Finish(true)
	exchange(t, a, b)
	if !errors.Is(aborted, transport.ErrStreamAborted) || a.Busy() || b.Busy() {
		t.Errorf("aborted: %v", aborted)
	}
	send(a, "uplink.test", &lost)
	b.Deliver(time.Now(), a.Next(nil, maxData))
	a.End(transport.ErrTimeout)
	b.End(transport.ErrTimeout)
	if !errors.Is(lost, transport.ErrTimeout) || len(b.whole) != 2 || !errors.Is(b.whole[1].err, transport.ErrTimeout) {
		t.Errorf("lost: %v, received %v", lost, b.whole)
	}
}
