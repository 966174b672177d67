package fragment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// split returns the fragments of a message.
func split(t interface{ Fatal(...any) }, s *Splitter, message []byte, part int) (out [][]byte) {
	f, err := s.Split(message[:part/2], message[part/2:], part)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, ok := f.Next(nil)
		if !ok {
			return out
		}
		out = append(out, b)
	}
}

// TestAnyOrder checks that loss, duplicates and reordering within the window let exactly the
// messages through of which all fragments are received, once and unchanged.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.IntRange(1, 9).Draw(t, "part")
		var s Splitter
		s.next = rapid.Uint16().Draw(t, "first")
		a := NewAssembler(part, MaxCount)
		first := s.next
		var sent, got [][]byte
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			var fragments [][]byte
			complete := map[int]bool{}
			for range rapid.IntRange(1, Window).Draw(t, "messages") {
				m := rapid.SliceOfN(rapid.Byte(), part+1, min(part*MaxCount, 40)).Draw(t, "message")
				lost := rapid.IntRange(-5, 5).Draw(t, "lost")
				complete[len(sent)] = true
				for i, b := range split(t, &s, m, part) {
					if i == lost {
						complete[len(sent)] = false
						continue
					}
					fragments = append(fragments, b)
					if rapid.IntRange(0, 9).Draw(t, "duplicate") == 0 {
						fragments = append(fragments, b)
					}
				}
				sent = append(sent, m)
			}
			for _, b := range rapid.Permutation(fragments).Draw(t, "order") {
				m, err := a.Add(b)
				if err != nil && !errors.Is(err, ErrDuplicate) {
					t.Fatal(err)
				}
				if m == nil {
					continue
				}
				n := int(binary.LittleEndian.Uint16(b) - first)
				if !complete[n] || !bytes.Equal(m, sent[n]) {
					t.Fatalf("message %d is %x, sent %x, complete: %v", n, m, sent[n], complete[n])
				}
				delete(complete, n)
				got = append(got, m)
			}
			for n, missing := range complete {
				if missing {
					t.Fatalf("message %d is missing", n)
				}
			}
		}
		a.Reset()
		if lost := len(sent) - len(got); a.Incomplete() > uint64(lost) {
			t.Fatalf("%d incomplete, %d lost", a.Incomplete(), lost)
		}
	})
}

func TestRefused(t *testing.T) {
	var s Splitter
	fragments := split(t, &s, []byte("abcdefgh"), 3)
	a := NewAssembler(3, 4)
	if _, err := a.Add(fragments[2]); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":          {nil, ErrMalformed},
		"no part":          {[]byte{0, 0, 0, 2}, ErrMalformed},
		"alone":            {[]byte{0, 0, 0, 0, 'a'}, ErrMalformed},
		"too many":         {[]byte{0, 0, 0, 4, 'a', 'b', 'c'}, ErrMalformed},
		"index":            {[]byte{0, 0, 3, 2, 'a', 'b', 'c'}, ErrMalformed},
		"short":            {[]byte{0, 0, 1, 2, 'a', 'b'}, ErrMalformed},
		"long":             {[]byte{0, 0, 2, 2, 'a', 'b', 'c', 'd'}, ErrMalformed},
		"another number":   {[]byte{0, 0, 1, 3, 'a', 'b', 'c'}, ErrMalformed},
		"again":            {fragments[2], ErrDuplicate},
		"before the first": {[]byte{0xfc, 0xff, 0, 2, 'a', 'b', 'c'}, ErrLate},
	} {
		if m, err := a.Add(c.b); !errors.Is(err, c.want) || m != nil {
			t.Errorf("%s: %q, %v, want %v", name, m, err, c.want)
		}
	}
	for i, want := range []string{"", "abcdefgh"} {
		if m, err := a.Add(fragments[i]); err != nil || string(m) != want {
			t.Errorf("fragment %d: %q, %v", i, m, err)
		}
	}
	if _, err := a.Add(fragments[0]); !errors.Is(err, ErrDuplicate) {
		t.Errorf("of a message that is complete: %v", err)
	}
}

func TestSplitLimits(t *testing.T) {
	var s Splitter
	for size, want := range map[int]error{0: ErrMalformed, 10: ErrMalformed, 11: nil, 640: nil, 641: ErrTooLarge} {
		f, err := s.Split(nil, make([]byte, size), 10)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
		if n := f.Count(); err == nil && n != (size+9)/10 {
			t.Errorf("%d bytes are %d fragments", size, n)
		}
	}
}

// TestIncomplete checks that newer messages discard incomplete ones, which are counted.
func TestIncomplete(t *testing.T) {
	var s Splitter
	a := NewAssembler(10, MaxCount)
	const messages = 1 << 17 // the sequence wraps
	for range messages {
		if m, err := a.Add(split(t, &s, make([]byte, 25), 10)[0]); m != nil || err != nil {
			t.Fatal(m, err)
		}
	}
	if got := a.Incomplete(); got != messages-Window {
		t.Errorf("%d incomplete, want %d", got, messages-Window)
	}
	a.Reset()
	if got := a.Incomplete(); got != messages {
		t.Errorf("%d incomplete after a reset, want %d", got, messages)
	}
}

func TestAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var s Splitter
	a := NewAssembler(100, MaxCount)
	message, buf := make([]byte, 950), make([]byte, 0, 200)
	one := func() {
		f, _ := s.Split(nil, message, 100)
		for {
			b, ok := f.Next(buf)
			if !ok {
				return
			}
			if _, err := a.Add(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range Window {
		one()
	}
	if n := allocs.PerRun(100, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzAdd adds fragments, each a byte of length and that many bytes.
func FuzzAdd(f *testing.F) {
	var s Splitter
	var in []byte
	for _, b := range split(f, &s, []byte("a message of a few parts"), 5) {
		in = append(append(in, byte(len(b))), b...)
	}
	f.Add(in)
	f.Add([]byte{5, 0, 0, 0, 0, 1})
	f.Add([]byte{9, 1, 2, 0, 63, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, in []byte) {
		const part = 5
		a := NewAssembler(part, 16)
		added, returned := 0, 0
		for len(in) > 0 {
			n := min(int(in[0]), len(in)-1)
			b := in[1 : 1+n]
			in = in[1+n:]
			m, err := a.Add(b)
			if err == nil {
				added += len(b) - HeaderSize
			}
			if returned += len(m); returned > added || err != nil && m != nil {
				t.Fatalf("%d bytes returned, %d added, %v", returned, added, err)
			}
		}
		stored := 0
		for n := range uint64(Window) {
			stored += cap(a.messages.Put(n).buf)
		}
		if stored > Window*16*part+64 {
			t.Fatalf("%d bytes are stored", stored)
		}
	})
}
