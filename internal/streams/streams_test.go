package streams

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// end is a Mux whose peer is the test.
type end struct {
	*Mux
	read chan *Reader // streams of the peer, which nobody reads unless the test does

	whole []whole // reserved streams of the peer
}

func newEnd() *end {
	e := &end{read: make(chan *Reader, 1000)}
	e.Mux = New(e)
	return e
}

func (e *end) Wake()          {}
func (e *end) Count(int, int) {}

func (e *end) Accept(r *Reader) bool {
	e.read <- r
	return true
}

func (e *end) AcceptReserved(r *Reader) func([]byte, error) {
	if r.Name() != "uplink.test" {
		return nil
	}
	return func(data []byte, err error) { e.whole = append(e.whole, whole{r, data, err}) }
}

type whole struct {
	*Reader
	data []byte
	err  error
}

// held returns the bytes that the Mux holds for the game.
func (e *end) held() (n int) {
	if e.slots == nil {
		return 0
	}
	for _, r := range e.in {
		if r != nil {
			n += cap(r.buf)
		}
	}
	return n
}

// message returns a message of a kind.
func message(k kind, number int, body ...byte) []byte {
	return append(appendHeader(nil, k, number), body...)
}

// TestViolations verifies that messages that no conforming peer sends are refused, and what a peer
// can make the Mux hold that fills all streams, which the game never reads.
func TestViolations(t *testing.T) {
	full := bytes.Repeat([]byte{1}, maxData)
	opened := func(e *end) { _ = e.Deliver(time.Now(), message(open, 1, 'x')) }
	writing := func(e *end) {
		_, _ = e.Open(t.Context(), time.Now(), "w")
		e.Next(nil, maxData)
	}
	for name, c := range map[string]struct {
		before func(e *end)
		last   []byte
	}{
		"empty":                   {last: nil},
		"unknown kind":            {last: message(kinds, 1)},
		"no name":                 {last: message(open, 1)},
		"long name":               {last: message(open, 1, make([]byte, MaxName+1)...)},
		"data of no stream":       {last: message(data, 1, 1)},
		"end of no stream":        {last: message(ending, 1)},
		"number in use":           {opened, message(open, 1, 'x')},
		"empty data":              {opened, message(data, 1)},
		"long data":               {opened, message(data, 1, make([]byte, maxData+1)...)},
		"end with a body":         {opened, message(ending, 1, 1)},
		"long reason":             {opened, message(abort, 1, make([]byte, MaxReason+1)...)},
		"data after the end":      {func(e *end) { opened(e); _ = e.Deliver(time.Now(), message(ending, 1)) }, message(data, 1, 1)},
		"end after the abort":     {func(e *end) { opened(e); _ = e.Deliver(time.Now(), message(abort, 1)) }, message(ending, 1)},
		"credit for no stream":    {last: appendCredit(nil, 0, 1)},
		"credit above the window": {writing, appendCredit(nil, 0, 1)},
		"short credit":            {writing, message(credit, 0, 1)},
		"credit of no bytes": {func(e *end) {
			writing(e)
			e.out[0].credit-- // as if a byte had been sent
		}, appendCredit(nil, 0, 0)},
		"complete before the end":   {writing, message(done, 0, byte(complete))},
		"unknown result":            {writing, message(done, 0, byte(results))},
		"credit before it was open": {func(e *end) { _, _ = e.Open(t.Context(), time.Now(), "w") }, appendCredit(nil, 0, 1)},
		"more than the window": {func(e *end) {
			opened(e)
			for range Window / maxData {
				if err := e.Deliver(time.Now(), message(data, 1, full...)); err != nil {
					t.Error(err)
				}
			}
		}, message(data, 1, full...)},
		"a byte more than the window": {func(e *end) {
			opened(e)
			for range Window / maxData {
				if err := e.Deliver(time.Now(), message(data, 1, full...)); err != nil {
					t.Error(err)
				}
			}
		}, message(data, 1, make([]byte, Window%maxData+1)...)},
		"more than the window after the game is done": {func(e *end) {
			opened(e)
			(<-e.read).finish()
			e.Next(nil, maxData)
			for range Window / maxData {
				if err := e.Deliver(time.Now(), message(data, 1, full...)); err != nil || e.held() != 0 {
					t.Error(err, e.held())
				}
			}
		}, message(data, 1, full...)},
		"too many streams a second": {func(e *end) {
			for range int(peerOpens.Burst) {
				if err := e.Deliver(time.Now(), message(open, 2, 'x')); err != nil {
					t.Error(err)
				}
				(<-e.read).finish()
				e.Next(nil, maxData)
			}
		}, message(open, 2, 'x')},
	} {
		e := newEnd()
		if c.before != nil {
			c.before(e)
		}
		if err := e.Deliver(time.Now(), c.last); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}

	e := newEnd()
	for n := range MaxStreams {
		_ = e.Deliver(time.Now(), message(open, n, 'x'))
		for e.Deliver(time.Now(), message(data, n, full...)) == nil {
		}
	}
	if held := e.held(); held > MaxStreams*Window || held < MaxStreams*Window*9/10 {
		t.Errorf("%d bytes are held, want about %d", held, MaxStreams*Window)
	}
}

// TestNoCredit verifies that an end sends no more than the window to a peer that reads nothing, and
// that it holds nothing of what the game writes.
func TestNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnd()
		w, err := e.Open(t.Context(), time.Now(), "never read")
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			n, err := w.Write(make([]byte, 1<<20))
			if n != Window {
				t.Errorf("%d bytes were taken", n)
			}
			failed <- err
		}()
		synctest.Wait()
		sent := 0
		for b := e.Next(nil, maxData); len(b) > 0; b = e.Next(nil, maxData) {
			sent += len(b)
		}
		if most := 1 + len("never read") + Window + Window/maxData + 1; sent > most {
			t.Errorf("%d bytes were sent, at most %d are permitted", sent, most)
		}
		time.Sleep(time.Hour)
		w.Abort("enough")
		if err := <-failed; !errors.Is(err, transport.ErrStreamAborted) || !strings.Contains(err.Error(), "enough") {
			t.Error(err)
		}
		if b := e.Next(nil, maxData); !bytes.Equal(b, message(abort, 0, []byte("enough")...)) {
			t.Errorf("sent %x", b)
		}
	})
}

// TestReservedNames verifies that games neither open nor receive streams with reserved names.
func TestReservedNames(t *testing.T) {
	e := newEnd()
	for name, reserved := range map[string]bool{"uplink.handover": true, "uplink.": true, "uplink": false, "replay/uplink.1": false} {
		if _, err := e.Open(t.Context(), time.Now(), name); (err != nil) != reserved {
			t.Errorf("open %q: %v", name, err)
		}
		if err := e.Deliver(time.Now(), message(open, 3, []byte(name)...)); err != nil {
			t.Fatal(err)
		}
		want := unhandled
		if !reserved {
			(<-e.read).Serve(func() {})
			want = stopped
		}
		if got := e.Next(nil, maxData); !bytes.Equal(got, message(done, 3, byte(want))) {
			t.Errorf("the answer to %q is %x", name, got)
		}
	}
	if len(e.read) != 0 {
		t.Error("a stream with a reserved name was delivered")
	}
}

// FuzzDeliver passes messages of a peer to a Mux, whose game reads some streams and writes others.
// Nothing panics, and the Mux holds no more than the windows.
func FuzzDeliver(f *testing.F) {
	var seed []byte
	for _, b := range [][]byte{message(open, 1, 'x'), message(data, 1, 1, 2, 3), message(ending, 1), appendCredit(nil, 0, 3), message(done, 0, 1)} {
		seed = append(append(seed, byte(len(b))), b...)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, in []byte) {
		e := newEnd()
		w, _ := e.Open(t.Context(), time.Now(), "w")
		w.pending = make([]byte, 2*Window)
		for len(in) > 0 {
			n := min(int(in[0]), len(in)-1)
			b := in[1 : 1+n]
			in = in[1+n:]
			k, number, _, _, err := parse(b)
			if err == nil && (int(k) != int(b[0]>>numberBits) || number > MaxStreams) {
				t.Errorf("%x is kind %d of stream %d", b, k, number)
			}
			if e.Deliver(time.Now(), b) != nil {
				break
			}
			for next := e.Next(nil, maxData); len(next) > 0; next = e.Next(nil, maxData) {
				if _, _, _, _, err := parse(next); err != nil {
					t.Errorf("sent %x: %v", next, err)
				}
			}
			select {
			case r := <-e.read:
				if r.Name()[0] == 'r' && (len(r.buf) > 0 || r.over || r.err != nil) {
					_, _ = r.Read(make([]byte, 100))
				}
				r.finish()
			default:
			}
			if e.held() > MaxStreams*Window {
				t.Fatalf("%d bytes are held", e.held())
			}
		}
	})
}
