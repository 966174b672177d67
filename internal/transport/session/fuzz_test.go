package session

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
)

var fuzzSecrets = seal.Secrets{ToServer: [32]byte{1}, ToClient: [32]byte{2}}

// fuzzed are sessions in each state, which do not need a handshake.
func fuzzed(now time.Time, cfg Config) []*Session {
	connecting := NewClient(now, testRequest(), cfg)
	waiting := NewClient(now, testRequest(), cfg)
	waiting.Input(now, serverAddr, wire.AppendRetry(nil, wire.Retry{Nonce: testNonce}))
	open := NewClient(now, testRequest(), cfg)
	open.begin(testID, seal.AES128GCM, fuzzSecrets)
	open.open(now)
	server := NewServer(now, Grant{Remote: clientAddr, ID: testID, Suite: seal.AES128GCM, Secrets: fuzzSecrets}, cfg)
	unencrypted := NewServer(now, Grant{Remote: clientAddr, ID: testID, Suite: seal.None, Secrets: fuzzSecrets}, cfg)
	return []*Session{connecting, waiting, open, server, unencrypted}
}

// FuzzInput feeds one datagram as it is, and then its body again and again as if the peer had
// encrypted it, to sessions in each state.
func FuzzInput(f *testing.F) {
	var seeds [][]byte
	add := func(b []byte) { seeds = append(seeds, bytes.Clone(b)) }
	for k := range wire.PartKind + 1 {
		for _, long := range []bool{false, true} {
			b := wire.AppendHeader(nil, wire.Header{Kind: k, Long: long, ID: testID})
			add(b)
			add(append(b, make([]byte, wire.ChallengeSize)...))
			add(wire.AppendHeartbeat(b, wire.Heartbeat{Ask: 1, Echo: 1, Answer: true}))
			add(wire.AppendClose(b, wire.Close{Text: []byte("bye")}))
			add(append(wire.AppendPart(b, wire.Part{Count: 2}), "part"...))
		}
	}
	add(wire.AppendHello(nil, wire.Hello{Version: wire.Version, Nonce: testNonce}))
	add(wire.AppendRetry(nil, wire.Retry{Nonce: testNonce}))
	add(wire.AppendWelcome(nil, wire.Welcome{Nonce: testNonce, Message: make([]byte, wire.WelcomeSize-9)}))
	add(wire.AppendRefuse(nil, wire.Refuse{Nonce: testNonce, Reason: wire.RefuseVersion}))
	add(wire.AppendUnknown(nil, wire.Unknown{Echo: wire.Header{Long: true, ID: testID}}))
	x := corpus.Target{Parser: "handshake", Seeds: seeds, Inputs: 3_000, Check: func(t testing.TB, in []byte) {
		now := time.Unix(1, 0)
		sent := 0
		cfg := Config{Timeout: testTimeout, Buffers: &Buffers{}, Output: func(_ Path, b []byte) {
			sent++
			if len(b) > wire.MaxDatagram {
				t.Fatalf("a datagram of %d bytes", len(b))
			}
		}}
		for _, s := range fuzzed(now, cfg) {
			feed(t, s, now, in)
			for i := range 30 {
				now := now.Add(time.Duration(i+1) * time.Millisecond)
				if b := encrypted(s, in); b != nil {
					feed(t, s, now, b)
				}
			}
		}
		if sent > 1000 {
			t.Fatalf("%d datagrams out for 155 in", sent)
		}
	}}
	x.Run(f)
}

// encrypted returns in as a datagram that the session's peer encrypted, or nil.
func encrypted(s *Session, in []byte) []byte {
	h, err := wire.ParseHeader(in)
	if err != nil || s.sealer == nil || len(in) > wire.MaxDatagram-wire.MaxTag-8 {
		return nil
	}
	secret := fuzzSecrets.ToServer
	if s.client {
		secret = fuzzSecrets.ToClient
	}
	number := s.window.Next()
	h.ID, h.Number = s.id, uint32(number)
	b := wire.AppendHeader(nil, h)
	return seal.NewSealer(s.opener.Suite(), secret).Seal(b, slices.Clone(b), in[h.Size():], number)
}

func feed(t testing.TB, s *Session, now time.Time, in []byte) {
	from := clientAddr
	if s.client {
		from = serverAddr
	}
	remote, heard := s.remote, s.received
	payload, v := s.Input(now, from, slices.Clone(in))
	if v >= Verdicts || v != Payload && payload != nil {
		t.Fatalf("verdict %d with a payload of %d bytes", v, len(payload))
	}
	if v == Unauthenticated && s.received != heard || s.remote != remote {
		t.Fatalf("verdict %d, heard at %v, remote %v", v, s.received, s.remote)
	}
	s.Receive(now, nil)
	s.Advance(now)
	if s.State() != Closed && !s.Next().After(now) {
		t.Fatal("Next is not after Advance")
	}
}
