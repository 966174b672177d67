package fragment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// all gives the fragments of a message.
func all(t interface{ Fatal(...any) }, s *Splitter, message []byte, part int) (out [][]byte) {
	f, err := s.Split(message, part)
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

// TestAnyOrder sends messages over a link that loses, repeats and reorders within the window: each of which all
// fragments came is there, once and as it was, and nothing else is.
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
			whole := map[int]bool{}
			for range rapid.IntRange(1, Window).Draw(t, "messages") {
				m := rapid.SliceOfN(rapid.Byte(), part+1, min(part*MaxCount, 40)).Draw(t, "message")
				lost := rapid.IntRange(-5, 5).Draw(t, "lost")
				whole[len(sent)] = true
				for i, b := range all(t, &s, m, part) {
					if i == lost {
						whole[len(sent)] = false
						continue
					}
					fragments = append(fragments, b)
					if rapid.IntRange(0, 9).Draw(t, "twice") == 0 {
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
				if !whole[n] || !bytes.Equal(m, sent[n]) {
					t.Fatalf("message %d is %x, sent was %x, all of it came: %v", n, m, sent[n], whole[n])
				}
				delete(whole, n)
				got = append(got, m)
			}
			for n, came := range whole {
				if came {
					t.Fatalf("message %d is missing", n)
				}
			}
		}
		a.Reset()
		if lost := len(sent) - len(got); a.Incomplete() > uint64(lost) {
			t.Fatalf("%d given up, %d did not come", a.Incomplete(), lost)
		}
	})
}

func TestRefused(t *testing.T) {
	var s Splitter
	fragments := all(t, &s, []byte("abcdefgh"), 3)
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
		f, err := s.Split(make([]byte, size), 10)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
		if n := f.Count(); err == nil && n != (size+9)/10 {
			t.Errorf("%d bytes are %d fragments", size, n)
		}
	}
}

// TestIncomplete: messages that never complete are given up by newer ones, and counted.
func TestIncomplete(t *testing.T) {
	var s Splitter
	a := NewAssembler(10, MaxCount)
	const messages = 1 << 17 // the sequence wraps
	for range messages {
		if m, err := a.Add(all(t, &s, make([]byte, 25), 10)[0]); m != nil || err != nil {
			t.Fatal(m, err)
		}
	}
	if got := a.Incomplete(); got != messages-Window {
		t.Errorf("%d given up, want %d", got, messages-Window)
	}
	a.Reset()
	if got := a.Incomplete(); got != messages {
		t.Errorf("%d given up after all, want %d", got, messages)
	}
}

func TestAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var s Splitter
	a := NewAssembler(100, MaxCount)
	message, buf := make([]byte, 950), make([]byte, 0, 200)
	one := func() {
		f, _ := s.Split(message, 100)
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
	if n := testing.AllocsPerRun(100, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzAdd feeds fragments: a byte of length, and that many bytes.
func FuzzAdd(f *testing.F) {
	var s Splitter
	var in []byte
	for _, b := range all(f, &s, []byte("a message of some parts"), 5) {
		in = append(append(in, byte(len(b))), b...)
	}
	f.Add(in)
	f.Add([]byte{5, 0, 0, 0, 0, 1})
	f.Add([]byte{9, 1, 2, 0, 63, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, in []byte) {
		const part = 5
		a := NewAssembler(part, 16)
		taken, given := 0, 0
		for len(in) > 0 {
			n := min(int(in[0]), len(in)-1)
			b := in[1 : 1+n]
			in = in[1+n:]
			m, err := a.Add(b)
			if err == nil {
				taken += len(b) - HeaderSize
			}
			if given += len(m); given > taken || err != nil && m != nil {
				t.Fatalf("%d bytes given, %d taken, %v", given, taken, err)
			}
		}
		held := 0
		for i := range a.places {
			held += cap(a.places[i].buf)
		}
		if held > Window*16*part+64 {
			t.Fatalf("%d bytes held", held)
		}
	})
}
