package wire

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// datagrams are one of each kind, as written and as read. The bytes were laid out by hand from the
// package's description.
var datagrams = []struct {
	name   string
	hex    string
	header Header
	body   any
}{
	{"data", "28 3412 68656c6c6f", Header{DataKind, 5, 0x1234}, []byte("hello")},
	{"reliable", "f9 ffff 00", Header{ReliableKind, 31, 0xffff}, []byte{0}},
	{
		"hello", "02 0000 0100 efcdab8967452301" + strings.Repeat("00", 51),
		Header{HelloKind, 0, 0},
		Hello{Version: 1, Nonce: 0x0123456789abcdef},
	},
	{
		"welcome", "3b 0000 0100 efcdab8967452301 8877665544332227",
		Header{WelcomeKind, 7, 0},
		Welcome{Version: 1, Nonce: 0x0123456789abcdef, Session: 0x2722334455667788},
	},
	{
		"refuse", "04 0000 efcdab8967452301 02",
		Header{RefuseKind, 0, 0},
		Refuse{Nonce: 0x0123456789abcdef, Reason: RefuseFull},
	},
	{
		"first heartbeat", "0d 0100 e8030000 00000000 0000 02",
		Header{HeartbeatKind, 1, 1},
		Heartbeat{Clock: 1000, Answer: true},
	},
	{
		"heartbeat", "0d 0200 e8030000 04030201 0605 01",
		Header{HeartbeatKind, 1, 2},
		Heartbeat{Clock: 1000, HasEcho: true, Echo: 0x01020304, Hold: 0x0506},
	},
	{
		"close", "0e 0300 01 627965",
		Header{CloseKind, 1, 3},
		Close{Code: CloseShutdown, Text: []byte("bye")},
	},
	{
		"unknown", "07 0000 28 3412",
		Header{UnknownKind, 0, 0},
		Unknown{Echo: Header{DataKind, 5, 0x1234}},
	},
}

// appendBody writes the body of any kind.
func appendBody(b []byte, body any) []byte {
	switch x := body.(type) {
	case Hello:
		return AppendHello(b, x)
	case Welcome:
		return AppendWelcome(b, x)
	case Refuse:
		return AppendRefuse(b, x)
	case Heartbeat:
		return AppendHeartbeat(b, x)
	case Close:
		return AppendClose(b, x)
	case Unknown:
		return AppendUnknown(b, x)
	default:
		return append(b, body.([]byte)...)
	}
}

// parseBody reads the body of that kind.
func parseBody(k Kind, body []byte) (any, error) {
	switch k {
	case HelloKind:
		return ParseHello(body)
	case WelcomeKind:
		return ParseWelcome(body)
	case RefuseKind:
		return ParseRefuse(body)
	case HeartbeatKind:
		return ParseHeartbeat(body)
	case CloseKind:
		return ParseClose(body)
	case UnknownKind:
		return ParseUnknown(body)
	case DataKind, ReliableKind:
	}
	return body, nil
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	for _, d := range datagrams {
		t.Run(d.name, func(t *testing.T) {
			want := unhex(t, d.hex)
			got := appendBody(AppendHeader(nil, d.header), d.body)
			if !bytes.Equal(got, want) {
				t.Errorf("written as %x, want %x", got, want)
			}
			h, body, err := ParseHeader(want)
			if err != nil || h != d.header {
				t.Fatalf("header read as %+v, %v, want %+v", h, err, d.header)
			}
			value, err := parseBody(h.Kind, body)
			if err != nil {
				t.Fatal(err)
			}
			if again := appendBody(AppendHeader(nil, h), value); !bytes.Equal(again, want) {
				t.Errorf("read as %+v, which is written as %x", value, again)
			}
		})
	}
}

func TestAnswersAreNotLongerThanTheirCause(t *testing.T) {
	sizes := make(map[Kind]int)
	for _, d := range datagrams {
		sizes[d.header.Kind] = len(unhex(t, d.hex))
	}
	if sizes[HelloKind] != HelloSize {
		t.Errorf("a hello has %d bytes, want %d", sizes[HelloKind], HelloSize)
	}
	if sizes[UnknownKind] != UnknownSize {
		t.Errorf("an unknown has %d bytes, want %d", sizes[UnknownKind], UnknownSize)
	}
	for _, k := range []Kind{WelcomeKind, RefuseKind} {
		if sizes[k] > HelloSize {
			t.Errorf("kind %d has %d bytes, more than a hello", k, sizes[k])
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, b := range [][]byte{nil, {0}, {0, 0}, make([]byte, MaxDatagram+1)} {
		if _, _, err := ParseHeader(b); err == nil {
			t.Errorf("a datagram of %d bytes was read", len(b))
		}
	}
	for _, d := range datagrams {
		k := d.header.Kind
		if k == DataKind || k == ReliableKind {
			continue
		}
		body := unhex(t, d.hex)[HeaderSize:]
		shorter := body[:len(body)-1]
		if k == CloseKind {
			shorter = nil // its text may be cut anywhere
		}
		if v, err := parseBody(k, shorter); err == nil {
			t.Errorf("%s cut off was read as %+v", d.name, v)
		}
		longer := append(bytes.Clone(body), make([]byte, MaxCloseText)...)
		if v, err := parseBody(k, longer); err == nil && k != HelloKind {
			t.Errorf("%s with an appendix was read as %+v", d.name, v)
		}
	}
}

func TestCloseCutsItsText(t *testing.T) {
	long := []byte(strings.Repeat("x", MaxCloseText+1))
	c, err := ParseClose(AppendClose(nil, Close{Text: long}))
	if err != nil || len(c.Text) != MaxCloseText {
		t.Errorf("%d bytes of text, %v, want %d", len(c.Text), err, MaxCloseText)
	}
}

// FuzzParse feeds each parser, whatever the kind says, and checks that what is accepted is written
// back as something that reads the same.
func FuzzParse(f *testing.F) {
	for _, d := range datagrams {
		f.Add(unhex(f, d.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		h, body, err := ParseHeader(b)
		if err != nil {
			return
		}
		if again := AppendHeader(nil, h); !bytes.Equal(again, b[:HeaderSize]) {
			t.Errorf("header %x is written back as %x", b[:HeaderSize], again)
		}
		for k := range UnknownKind + 1 {
			value, err := parseBody(k, body)
			if err != nil {
				continue
			}
			written := appendBody(nil, value)
			again, err := parseBody(k, written)
			if err != nil {
				t.Fatalf("kind %d: %x is written back as %x, which is %v", k, body, written, err)
			}
			if rewritten := appendBody(nil, again); !bytes.Equal(written, rewritten) {
				t.Errorf("kind %d: %x reads as %+v, then as %+v", k, body, value, again)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the input was written to")
		}
	})
}
