package wire

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
)

var (
	testCookie  = [CookieSize]byte([]byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18"))
	cookieHex   = "0102030405060708090a0b0c0d0e0f101112131415161718"
	nonceHex    = "efcdab8967452301"
	testMessage = bytes.Repeat([]byte{0x5a}, grantMessage)
	messageHex  = strings.Repeat("5a", grantMessage)
)

const testNonce = 0x0123456789abcdef

// layout is one of the package's, as written and as read.
type layout struct {
	name   string
	hex    string // laid out by hand from the package's description
	value  any
	append func(b []byte, v any) []byte
	parse  func(b []byte) (any, error)
}

// of makes the functions of a layout.
func of[T any](add func([]byte, T) []byte, parse func([]byte) (T, error)) layout {
	return layout{
		append: func(b []byte, v any) []byte { return add(b, v.(T)) },
		parse:  func(b []byte) (any, error) { return parse(b) },
	}
}

func (l layout) with(name, hex string, value any) layout {
	l.name, l.hex, l.value = name, hex, value
	return l
}

var testKeyID = [KeySize]byte{1, 2, 3, 4}

var (
	headers    = of(AppendHeader, ParseHeader)
	hellos     = of(AppendHello, ParseHello)
	retries    = of(AppendRetry, ParseRetry)
	welcomes   = of(AppendWelcome, ParseWelcome)
	refuses    = of(AppendRefuse, ParseRefuse)
	unknowns   = of(AppendUnknown, ParseUnknown)
	offers     = of(AppendOffer, ParseOffer)
	grants     = of(AppendGrant, ParseGrant)
	heartbeats = of(AppendHeartbeat, ParseHeartbeat)
	closes     = of(AppendClose, ParseClose)
	answers    = of(AppendProbeAnswer, ParseProbeAnswer)
)

var layouts = []layout{
	headers.with("data header", "d2 34", Header{Kind: DataKind, Number: 0x1234}),
	headers.with("last data header", "ff ff", Header{Kind: DataKind, Number: 0x3fff}),
	headers.with("short header", "15 3412", Header{Kind: HeartbeatKind, Number: 0x51234}),
	headers.with("long data header", "45 8877665544332227 3412", Header{Kind: DataKind, Long: true, ID: 0x2722334455667788, Number: 0x51234}),
	headers.with("long header", "5b 8877665544332227 ffff", Header{Kind: CloseKind, Long: true, ID: 0x2722334455667788, Number: 0x3ffff}),
	headers.with("last kind", "38 0100", Header{Kind: PartKind, Number: 1}),
	hellos.with("first hello", "80 0400 "+nonceHex+strings.Repeat("00", 24)+"01020304 00 0000"+strings.Repeat("00", 22),
		Hello{Version: 4, Nonce: testNonce, Key: testKeyID, Message: []byte{}}),
	hellos.with("hello", "80 0400 "+nonceHex+cookieHex+"01020304 00 3a00"+messageHex,
		Hello{Version: 4, Nonce: testNonce, Cookie: testCookie, Key: testKeyID, Message: testMessage}),
	hellos.with("padded hello", "80 0400 "+nonceHex+cookieHex+"01020304 02 6575 0100 77"+strings.Repeat("00", 22),
		Hello{Version: 4, Nonce: testNonce, Cookie: testCookie, Key: testKeyID, Route: []byte("eu"), Message: []byte{0x77}}),
	retries.with("retry", "81"+nonceHex+cookieHex, Retry{Nonce: testNonce, Cookie: testCookie}),
	welcomes.with("welcome", "82"+nonceHex+messageHex, Welcome{Nonce: testNonce, Message: testMessage}),
	refuses.with("refuse", "83"+nonceHex+"02", Refuse{Nonce: testNonce, Reason: RefuseBusy}),
	unknowns.with("unknown data", "84 d234", Unknown{Echo: Header{Number: 0x1234}}),
	unknowns.with("unknown short", "84 0d3412", Unknown{Echo: Header{Kind: ReliableKind, Number: 0x51234}}),
	unknowns.with("unknown long", "84 508877665544332227 3412",
		Unknown{Echo: Header{Kind: HeartbeatKind, Long: true, ID: 0x2722334455667788, Number: 0x1234}}),
	offers.with("offer", "06 616263", Offer{Suites: 6, Token: []byte("abc")}),
	grants.with("grant", "00 8877665544332227 01", Grant{ID: 0x2722334455667788, Suite: 1}),
	grants.with("no grant", "05 0000000000000000 00", Grant{Code: TokenStale}),
	grants.with("token ahead", "08 3d000000 00e1f505 00", Grant{Code: TokenAhead, Detail: AheadDetail(61, 1e8)}),
	heartbeats.with("first heartbeat", "e8030000 00000000 000000 01", Heartbeat{Ask: 1000, Answer: true}),
	heartbeats.with("heartbeat", "e8030000 04030201 070605 00", Heartbeat{Ask: 1000, Echo: 0x01020304, Hold: 0x050607}),
	answers.with("probe answer", "c005", 1472),
	closes.with("close", "01 627965", Close{Code: CloseShutdown, Text: []byte("bye")}),
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b := check.Value(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
	return b
}

func TestGolden(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			want := unhex(t, l.hex)
			if got := l.append(nil, l.value); !bytes.Equal(got, want) {
				t.Errorf("written as %x, want %x", got, want)
			}
			value, err := l.parse(want)
			if err != nil || !reflect.DeepEqual(value, l.value) {
				t.Errorf("read as %+v, %v, want %+v", value, err, l.value)
			}
		})
	}
}

func TestAnswersAreNotLongerThanTheirCause(t *testing.T) {
	empty := len(AppendHello(nil, Hello{Version: Version}))
	full := len(AppendHello(nil, Hello{Version: Version, Message: []byte{1}}))
	if empty != HelloSize || full < WelcomeSize || HelloSize < RetrySize || HelloSize < RefuseSize {
		t.Errorf("hellos of %d and %d bytes, welcome %d, retry %d, refuse %d", empty, full, WelcomeSize, RetrySize, RefuseSize)
	}
	for _, h := range []Header{{}, {Kind: HeartbeatKind}, {Long: true}} {
		if n := len(AppendUnknown(nil, Unknown{Echo: h})); n != UnknownSize(h) {
			t.Errorf("an unknown of %d bytes, want %d", n, UnknownSize(h))
		}
	}
	if n := len(AppendHello(nil, Hello{Route: make([]byte, MaxRoute), Message: make([]byte, MaxHelloMessage)})); n != BaseDatagram {
		t.Errorf("the largest hello has %d bytes, want %d", n, BaseDatagram)
	}
}

// A listener reads version and nonce of hellos that it does not know otherwise.
func TestHelloOfAnotherVersion(t *testing.T) {
	b := AppendHello(nil, Hello{Version: 9, Nonce: 5, Cookie: testCookie, Message: []byte{1}})
	if h, err := ParseHello(b); err != nil || !reflect.DeepEqual(h, Hello{Version: 9, Nonce: 5}) {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, l := range layouts {
		b := unhex(t, l.hex)
		switch l.value.(type) {
		case Header, Offer, Close: // may be followed by anything, or cut anywhere
			if v, err := l.parse(nil); err == nil {
				t.Errorf("%s: nothing was read as %+v", l.name, v)
			}
			continue
		case Hello:
			b = b[:HelloSize]
		}
		if v, err := l.parse(b[:len(b)-1]); err == nil {
			t.Errorf("%s cut off was read as %+v", l.name, v)
		}
		if v, err := l.parse(append(bytes.Clone(b), 0)); err == nil && l.name != "first hello" {
			t.Errorf("%s with an appendix was read as %+v", l.name, v)
		}
	}
	for name, b := range map[string][]byte{"nothing": nil, "too long": make([]byte, MaxDatagram+1)} {
		if f, err := FormOf(b); err == nil {
			t.Errorf("%s has form %d", name, f)
		}
	}
	for name, err := range map[string]error{
		"data header":       second(ParseHeader([]byte{0xc0})),
		"short header":      second(ParseHeader([]byte{0x10, 0})),
		"report":            third(ParseReport(make([]byte, ReportSize-1))),
		"long header":       second(ParseHeader(append([]byte{0x40}, make([]byte, LongSize-2)...))),
		"handshake header":  second(ParseHeader([]byte{0x80, 0, 0, 0})),
		"type":              second(ParseType([]byte{0x80 | byte(types)})),
		"type of a session": second(ParseType([]byte{0})),
		"type of a record":  second(ParseType([]byte{RecordMark, 0, 0})),
		"its other type":    second(ParseType([]byte{RecordMark + 1, 0, 0})),
		"grant without id":  second(ParseGrant(make([]byte, GrantSize))),
		"unknown code":      second(ParseGrant([]byte{byte(codes), 1, 0, 0, 0, 0, 0, 0, 0, 0})),
		"challenge":         second(ParseChallenge(make([]byte, ChallengeSize+1))),
		"probe":             ParseProbe([]byte{0, 1}),
		"close text":        second(ParseClose(make([]byte, MaxCloseText+2))),
		"long message":      second(ParseHello(append(unhex(t, "80 0400"+nonceHex+cookieHex+"01020304 00 ffff"), make([]byte, 100)...))),
		"long route":        second(ParseHello(append(unhex(t, "80 0400"+nonceHex+cookieHex+"01020304 11"), make([]byte, 100)...))),
	} {
		if err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

// TestReport checks that a short header of the data kind has a report, and that a payload follows
// it.
func TestReport(t *testing.T) {
	h := Header{Kind: DataKind, Report: true, Number: 1<<NumberBits - 1}
	want := Report{Newest: 0xfffe, Arrived: 0x1234, Count: 0xabcd}
	b := append(AppendReport(AppendHeader(nil, h), want), "payload"...)
	if got, err := ParseHeader(b); err != nil || got != h || h.Form() != ShortForm {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, rest, err := ParseReport(b[h.Size():]); err != nil || got != want || string(rest) != "payload" {
		t.Errorf("got %+v, %q, %v", got, rest, err)
	}
}

func TestCloseCutsItsText(t *testing.T) {
	long := []byte(strings.Repeat("x", MaxCloseText+1))
	c, err := ParseClose(AppendClose(nil, Close{Text: long}))
	if err != nil || len(c.Text) != MaxCloseText {
		t.Errorf("%d bytes of text, %v, want %d", len(c.Text), err, MaxCloseText)
	}
}

// FuzzParse feeds each parser, and checks that what is accepted is written back as something that
// reads the same.
func FuzzParse(f *testing.F) {
	var seeds [][]byte
	for _, l := range layouts {
		seeds = append(seeds, unhex(f, l.hex))
	}
	x := corpus.Target{Parser: "handshake", Seeds: seeds, Inputs: 20_000, Check: func(t testing.TB, b []byte) {
		before := bytes.Clone(b)
		_, _ = ParseChallenge(b)
		_ = ParseProbe(b)
		for _, l := range []layout{headers, hellos, retries, welcomes, refuses, unknowns, offers, grants, heartbeats, closes, answers} {
			value, err := l.parse(b)
			if err != nil {
				continue
			}
			written := l.append(nil, value)
			again, err := l.parse(written)
			if h, ok := value.(Hello); ok && h.Version != Version {
				continue // only its head is known
			}
			if err != nil {
				t.Fatalf("%T: %x is written back as %x, which is %v", value, b, written, err)
			}
			if !reflect.DeepEqual(value, again) {
				t.Errorf("%T: %x reads as %+v, then as %+v", value, b, value, again)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the input was written to")
		}
	}}
	x.Run(f)
}
