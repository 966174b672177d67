package seal

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

func (b hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(b)), nil }

// noiseVector is a handshake with all values between. The README of testdata/vectors describes the
// members.
type noiseVector struct {
	Name            string    `json:"name"`
	Prologue        hexBytes  `json:"prologue"`
	ServerPrivate   hexBytes  `json:"server_private"`
	ServerPublic    hexBytes  `json:"server_public"`
	ClientEphemeral hexBytes  `json:"client_ephemeral"`
	ServerEphemeral hexBytes  `json:"server_ephemeral"`
	HProtocol       hexBytes  `json:"h_protocol"`
	HPrologue       hexBytes  `json:"h_prologue"`
	HServer         hexBytes  `json:"h_server"`
	Hello           noiseStep `json:"hello"`
	Welcome         noiseStep `json:"welcome"`
	SplitToServer   hexBytes  `json:"split_to_server"`
	SplitToClient   hexBytes  `json:"split_to_client"`
	ToServer        hexBytes  `json:"to_server"`
	ToClient        hexBytes  `json:"to_client"`
}

// noiseStep is a message of a handshake.
type noiseStep struct {
	Payload    hexBytes `json:"payload"`
	Ephemeral  hexBytes `json:"ephemeral"`
	HEphemeral hexBytes `json:"h_ephemeral"`
	DH         hexBytes `json:"dh"`
	Chain      hexBytes `json:"chain"`
	Key        hexBytes `json:"key"`
	Ciphertext hexBytes `json:"ciphertext"`
	H          hexBytes `json:"h"`
	Message    hexBytes `json:"message"`
}

// pattern returns n bytes from a start.
func pattern(n int, start byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = start + byte(i)
	}
	return b
}

func mixHash(h []byte, parts ...[]byte) []byte {
	sum := sha256.Sum256(append(bytes.Clone(h), bytes.Join(parts, nil)...))
	return sum[:]
}

// mixKey is HKDF with two outputs.
func mixKey(t *testing.T, chain, secret []byte) (next, key hexBytes) {
	t.Helper()
	prk := check.Value(hkdf.Extract(sha256.New, secret, chain))(t)
	out := check.Value(hkdf.Expand(sha256.New, prk, "", 64))(t)
	return out[:32], out[32:]
}

// noise computes a handshake step by step, without the library that the package uses.
func (v *noiseVector) noise(t *testing.T) {
	t.Helper()
	private := func(b []byte) *ecdh.PrivateKey { return check.Value(ecdh.X25519().NewPrivateKey(b))(t) }
	server, ours, theirs := private(v.ServerPrivate), private(v.ClientEphemeral), private(v.ServerEphemeral)
	v.ServerPublic = server.PublicKey().Bytes()
	v.HProtocol = append([]byte("Noise_NK_25519_ChaChaPoly_SHA256"), make([]byte, 32)...)[:32]
	v.HPrologue = mixHash(v.HProtocol, v.Prologue)
	v.HServer = mixHash(v.HPrologue, v.ServerPublic)
	h, chain := v.HServer, v.HProtocol
	step := func(s *noiseStep, own, peer *ecdh.PrivateKey) {
		s.Ephemeral = own.PublicKey().Bytes()
		s.HEphemeral = mixHash(h, s.Ephemeral)
		s.DH = check.Value(own.ECDH(peer.PublicKey()))(t)
		var key hexBytes
		chain, key = mixKey(t, chain, s.DH)
		s.Chain, s.Key = chain, key
		a := check.Value(chacha20poly1305.New(key))(t)
		s.Ciphertext = a.Seal(nil, make([]byte, a.NonceSize()), s.Payload, s.HEphemeral)
		s.H = mixHash(s.HEphemeral, s.Ciphertext)
		s.Message = append(bytes.Clone(s.Ephemeral), s.Ciphertext...)
		h = s.H
	}
	step(&v.Hello, ours, server)
	step(&v.Welcome, theirs, ours)
	v.SplitToServer, v.SplitToClient = mixKey(t, chain, nil)
	v.ToServer = check.Value(hkdf.Key(sha256.New, v.SplitToServer, h, "uplink to server", 32))(t)
	v.ToClient = check.Value(hkdf.Key(sha256.New, v.SplitToClient, h, "uplink to client", 32))(t)
}

// TestHandshakeVectors writes or compares noise.json, whose values are computed by this test, and
// compares the package with it.
func TestHandshakeVectors(t *testing.T) {
	offered := byte(1<<AES128GCM | 1<<AES128CTRHMAC8 | 1<<ChaCha20Poly1305 | 1<<ChaCha20SipHash8)
	all := []noiseVector{
		{Name: "empty payloads"},
		{Name: "the longest token, refused as expired", Hello: noiseStep{Payload: append([]byte{offered}, pattern(528, 3)...)}, Welcome: noiseStep{Payload: []byte("\x01\x2a\x00\x00\x00\x00\x00\x00\x00\x00")}},
	}
	for _, suite := range realSuites {
		grant := append([]byte("\x00\x88\x77\x66\x55\x44\x33\x22\x11"), byte(suite))
		all = append(all, noiseVector{Name: "suite " + suite.String(), Hello: noiseStep{Payload: append([]byte{offered}, pattern(79, 1)...)}, Welcome: noiseStep{Payload: grant}})
	}
	for i := range all {
		v := &all[i]
		v.Prologue = hexBytes(testPrologue)
		v.ServerPrivate, v.ClientEphemeral, v.ServerEphemeral = pattern(32, byte(10+i)), pattern(32, byte(60+i)), pattern(32, byte(110+i))
		v.noise(t)
		v.verify(t)
	}
	vectors.Check(t, "testdata/vectors/noise.json", vectors.Section{Name: "handshakes", Value: all})
}

// verify holds Initiator and Responder against the vector.
func (v *noiseVector) verify(t *testing.T) {
	t.Helper()
	key := NewStaticKey([32]byte(v.ServerPrivate))
	if public := key.Public(); !bytes.Equal(public[:], v.ServerPublic) {
		t.Errorf("public key %x, want %x", public, v.ServerPublic)
	}
	i := NewInitiator(bytes.NewReader(v.ClientEphemeral), key.Public(), v.Prologue)
	hello, err := i.Hello(nil, v.Hello.Payload)
	if err != nil || !bytes.Equal(hello, v.Hello.Message) {
		t.Fatalf("hello %x, %v; want %x", hello, err, v.Hello.Message)
	}
	r := NewResponder(bytes.NewReader(v.ServerEphemeral), key, v.Prologue)
	if payload, err := r.Hello(hello); err != nil || !bytes.Equal(payload, v.Hello.Payload) {
		t.Fatalf("hello's payload %x, %v; want %x", payload, err, v.Hello.Payload)
	}
	want := Secrets{ToServer: [32]byte(v.ToServer), ToClient: [32]byte(v.ToClient)}
	welcome, secrets, err := r.Welcome(nil, v.Welcome.Payload)
	if err != nil || !bytes.Equal(welcome, v.Welcome.Message) || secrets != want {
		t.Fatalf("welcome %x, %x, %v; want %x, %x", welcome, secrets, err, v.Welcome.Message, want)
	}
	payload, secrets, err := i.Welcome(welcome)
	if err != nil || !bytes.Equal(payload, v.Welcome.Payload) || secrets != want {
		t.Fatalf("welcome's payload %x, %x, %v; want %x, %x", payload, secrets, err, v.Welcome.Payload, want)
	}
}
