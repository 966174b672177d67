package keylog

import (
	"bytes"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
)

func anySession(t *rapid.T) Session {
	return Session{
		ID:       rapid.Uint64Min(1).Draw(t, "id"),
		Suite:    seal.Suite(rapid.IntRange(0, 2).Draw(t, "suite")),
		ToServer: [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "to server")),
		ToClient: [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "to client")),
	}
}

// TestRoundTrip reads what was written, between lines of others.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var file []byte
		var want []Session
		known := map[uint64]int{}
		for range rapid.IntRange(0, 5).Draw(t, "sessions") {
			s := anySession(t)
			if len(want) > 0 && rapid.Bool().Draw(t, "again") {
				s.ID = want[0].ID
			}
			if i, ok := known[s.ID]; ok {
				want[i] = s
			} else {
				known[s.ID] = len(want)
				want = append(want, s)
			}
			other := rapid.SampledFrom([]string{"", "\n", "# UPLINK_SESSION_1\r\n", "CLIENT_RANDOM 00 11\n", "UPLINK_SESSION_2\n"}).Draw(t, "other")
			file = s.Append(append(file, other...))
		}
		got, err := Parse(bytes.NewReader(file))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v (%v), want %+v", got, err, want)
		}
	})
}

// TestLine is the layout.
func TestLine(t *testing.T) {
	s := Session{ID: 0xabc, Suite: seal.AES128CTRHMAC8, ToServer: [32]byte{1}, ToClient: [32]byte{31: 0xfe}}
	want := "UPLINK_SESSION_1 0000000000000abc aes128ctr-hmac8 01" + strings.Repeat("00", 31) + " " + strings.Repeat("00", 31) + "fe\n"
	if got := string(s.Append(nil)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBadLines(t *testing.T) {
	good := string((&Session{ID: 1, Suite: seal.AES128GCM}).Append(nil))
	zeros := strings.Repeat("0", 64)
	for _, c := range []struct{ line, want string }{
		{"UPLINK_SESSION_1", "1 words, want 5"},
		{strings.TrimSpace(good) + " more", "6 words, want 5"},
		{"UPLINK_SESSION_1 1 aes128gcm " + zeros + " " + zeros, "the id has 1 digits, want 16"},
		{"UPLINK_SESSION_1 000000000000000g aes128gcm " + zeros + " " + zeros, `the id "000000000000000g" is none`},
		{"UPLINK_SESSION_1 0000000000000000 aes128gcm " + zeros + " " + zeros, `the id "0000000000000000" is none`},
		{"UPLINK_SESSION_1 0000000000000001 rot13 " + zeros + " " + zeros, `there is no suite "rot13"`},
		{good[:len(good)-2], "secret 2 has 63 digits, want 64"},
		{strings.Replace(good, zeros, zeros[1:]+"x", 1), "secret 1 is not hexadecimal"},
		{strings.Repeat("x", 4097), "more than 4096 bytes"},
	} {
		got, err := Parse(strings.NewReader(good + c.line))
		if err == nil || err.Error() != "key log: line 2: "+c.want || len(got) != 1 {
			t.Errorf("%s: %d sessions, %v", c.line, len(got), err)
		}
	}
}

// endless repeats what line returns until a number of bytes was read.
type endless struct {
	line func(n int) []byte
	n    int
	rest []byte
	left int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	if len(e.rest) == 0 {
		e.rest = e.line(e.n)
		e.n++
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	e.left -= n
	return n, nil
}

// TestBombs parses large key logs, and makes openers of what they hold.
func TestBombs(t *testing.T) {
	const size = 12 << 20
	s := Session{Suite: seal.AES128GCM}
	for _, c := range []struct {
		name, want string
		sessions   int
		line       func(n int) []byte
	}{
		{"sessions", "key log: line 65537: more than 65536 sessions", 65536, func(n int) []byte {
			s.ID = uint64(n) + 1
			return s.Append(nil)
		}},
		{"the same session", "", 1, func(int) []byte {
			s.ID = 1
			return s.Append(nil)
		}},
		{"comments", "", 0, func(int) []byte { return []byte("# " + strings.Repeat("x", 4000) + "\n") }},
		{"words", "", 0, func(int) []byte { return []byte(strings.Repeat("x ", 2000) + "\n") }},
		{"empty lines", "", 0, func(int) []byte { return bytes.Repeat([]byte("\n"), 1<<16) }},
		{"no line", "key log: line 1: more than 4096 bytes", 0, func(int) []byte { return bytes.Repeat([]byte("x"), 1<<16) }},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		sessions, err := Parse(&endless{line: c.line, left: size})
		o := NewOpener(sessions)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if len(sessions) != c.sessions || c.want == "" && err != nil && !strings.Contains(err.Error(), "digits") && !strings.Contains(err.Error(), "words") || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %d sessions, %v", c.name, len(sessions), err)
		}
		n := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		t.Logf("%s: %d sessions, %.1f MiB", c.name, len(o.all), float64(n)/(1<<20))
		if n > 40<<20 {
			t.Errorf("%s: %d sessions take %d bytes", c.name, len(sessions), n)
		}
		runtime.KeepAlive(o)
	}
}

func FuzzParse(f *testing.F) {
	f.Add((&Session{ID: 1, Suite: seal.AES128GCM, ToServer: [32]byte{3}}).Append([]byte("# a comment\n")))
	f.Add([]byte("UPLINK_SESSION_1 0000000000000001 none\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		sessions, err := Parse(bytes.NewReader(file))
		var again []byte
		for i := range sessions {
			again = sessions[i].Append(again)
		}
		if len(again) > 2*len(file)+1 {
			t.Fatalf("%d bytes make %d", len(file), len(again))
		}
		got, err2 := Parse(bytes.NewReader(again))
		if err2 != nil || len(got) != len(sessions) || len(got) > 0 && !reflect.DeepEqual(got, sessions) {
			t.Fatalf("%+v (%v), then %+v (%v)", sessions, err, got, err2)
		}
	})
}
