package session

import (
	"bytes"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// FuzzInput feeds one datagram again and again, under the session's tag and with ever new numbers, to
// both ends in each state.
func FuzzInput(f *testing.F) {
	for k := range wire.UnknownKind + 1 {
		b := wire.AppendHeader(nil, wire.Header{Kind: k})
		f.Add(wire.AppendHeartbeat(b, wire.Heartbeat{Answer: true, HasEcho: true}))
		f.Add(wire.AppendWelcome(b, wire.Welcome{Version: wire.Version, Nonce: testNonce, Session: testID}))
		f.Add(wire.AppendClose(b, wire.Close{Text: []byte("bye")}))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		now := time.Unix(1, 0)
		sent := 0
		cfg := Config{Timeout: testTimeout, Output: func(b []byte) {
			sent++
			if len(b) > wire.MaxDatagram {
				t.Fatalf("a datagram of %d bytes", len(b))
			}
		}}
		connecting := NewClient(now, testNonce, cfg)
		open := NewClient(now, testNonce, cfg)
		open.begin(testID)
		open.open(now)
		for _, s := range []*Session{connecting, open, NewServer(now, testNonce, testID, cfg)} {
			for i := range 50 {
				feed(t, s, now.Add(time.Duration(i)*time.Millisecond), in)
			}
		}
		if sent > 1000 {
			t.Fatalf("%d datagrams out for 150 in", sent)
		}
	})
}

func feed(t *testing.T, s *Session, now time.Time, in []byte) {
	b := bytes.Clone(in)
	if h, body, err := wire.ParseHeader(b); err == nil && s.id != 0 {
		h.Tag, h.Number = s.tag, uint16(s.recv.newest+1)
		b = append(wire.AppendHeader(nil, h), body...)
	}
	before := bytes.Clone(b)
	payload, v := s.Input(now, b)
	if !bytes.Equal(b, before) {
		t.Fatal("the input was written to")
	}
	if v >= Verdicts || v != Payload && payload != nil {
		t.Fatalf("verdict %d with a payload of %d bytes", v, len(payload))
	}
	s.Receive(now)
	s.Advance(now)
	if s.State() != Closed && !s.Next().After(now) {
		t.Fatal("Next is not after Advance")
	}
}
