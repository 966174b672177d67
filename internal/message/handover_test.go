package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/token"
)

func testHandover(t testing.TB) HandoverNotice {
	t.Helper()
	data := []byte("the game's data")
	h := HandoverNotice{
		Stream: 3, Tick: 300, Size: len(data), Hash: sha256.Sum256(data),
		Servers: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.9:7777"), netip.MustParseAddrPort("[2001:db8::7]:7778")},
	}
	issued := time.UnixMilli(1_789_000_000_000)
	h.Token = check.Value(token.Issue(token.Development().Issuer(), token.Claims{
		ClientID: 42, Issued: issued, Expires: issued.Add(time.Minute), Servers: h.Servers, Handover: h.Hash,
	}))(t)
	return h
}

// TestHandover checks the layout, and that all of it is read.
func TestHandover(t *testing.T) {
	h := testHandover(t)
	b := AppendHandover(nil, &h)
	want := "c003ac020f000000" + hex.EncodeToString(h.Hash[:]) + "0204cb007109611e0620010db80000000000000000000000076" + "21e" + hex.EncodeToString([]byte(h.Token.String()))
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	kind, body, err := Split(b)
	if kind != Handover || err != nil {
		t.Fatal(kind, err)
	}
	if got, err := ParseHandover(body); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%+v, %v, want %+v", got, err, h)
	}
	h.Stream, h.Tick, h.Size, h.Hash = NoStream, 0, 0, [sha256.Size]byte{}
	if got, err := ParseHandover(AppendHandover(nil, &h)[1:]); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("without data: %+v, %v, want %+v", got, err, h)
	}
	for n := range body {
		if _, err := ParseHandover(body[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}

func TestMalformedHandover(t *testing.T) {
	for want, change := range map[string]func(h *HandoverNotice){
		"no number of a replication stream":  func(h *HandoverNotice) { h.Stream = 16 },
		"tick 9007199254740992 of stream 3":  func(h *HandoverNotice) { h.Tick = 1 << 53 },
		"tick 300 of stream 255":             func(h *HandoverNotice) { h.Stream = NoStream },
		"no size up to 65536 bytes":          func(h *HandoverNotice) { h.Size = MaxHandover + 1 },
		"no number of servers from 1 to 8":   func(h *HandoverNotice) { h.Servers = nil },
		"a server at 0.0.0.0:7777":           func(h *HandoverNotice) { h.Servers[0] = netip.MustParseAddrPort("0.0.0.0:7777") },
		"a server at 203.0.113.9:0":          func(h *HandoverNotice) { h.Servers[0] = netip.MustParseAddrPort("203.0.113.9:0") },
		"a server at [::ffff:192.0.2.1]:7":   func(h *HandoverNotice) { h.Servers[0] = netip.MustParseAddrPort("[::ffff:192.0.2.1]:7") },
		"malformed token or key: want a tok": func(h *HandoverNotice) { h.Token = token.Token{} },
	} {
		h := testHandover(t)
		change(&h)
		if _, err := ParseHandover(AppendHandover(nil, &h)[1:]); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRelease checks the messages that end a handover, and the hash that binds secret and data.
func TestRelease(t *testing.T) {
	s := NewSecret()
	b := AppendRelease(nil, s)
	if got, released, err := ParseRelease(b[1:]); got != s || !released || err != nil || !IsRelease(b[1:]) || Type(b[0]) != Handover {
		t.Errorf("%x: %x, %v, %v", b, got, released, err)
	}
	if _, released, err := ParseRelease(AppendSwitch(nil)[1:]); released || err != nil {
		t.Errorf("a switch: %v, %v", released, err)
	}
	for _, n := range []int{1, 31, 33} {
		if _, _, err := ParseRelease(make([]byte, n)); !errors.Is(err, ErrMalformed) || IsRelease(make([]byte, n)) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if s == NewSecret() || s.Hash([]byte("data")) != sha256.Sum256(append(s[:], "data"...)) {
		t.Error("the hash is not that of secret and data")
	}
}

// checkHandover checks that an accepted handover stays the same when it is appended and parsed
// again.
func checkHandover(t testing.TB, b []byte) {
	t.Helper()
	h, err := ParseHandover(b)
	if err != nil {
		return
	}
	again := AppendHandover(nil, &h)[1:]
	if got, err := ParseHandover(again); err != nil || !reflect.DeepEqual(got, h) {
		t.Fatalf("%+v became %+v, %v", h, got, err)
	}
	if len(again) > len(b) && !bytes.Equal(again, b) {
		t.Fatalf("%d bytes became %d", len(b), len(again))
	}
}
