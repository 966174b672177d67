package seal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// vectors is testdata/vectors.json, which testdata/vectors.py writes.
type vectors struct {
	AEAD []struct {
		SFrame                         uint16
		Key, Nonce, AAD, Plain, Sealed hexBytes
	}
	Datagram []struct {
		SFrame                     uint16
		Number                     uint64
		Secret, AAD, Plain, Sealed hexBytes
	}
	Handshake []handshakeVector
	Cookie    []struct {
		Secret, Cookie hexBytes
		Addr           netip.AddrPort
		Nonce          uint64
		At             int64 `json:"at_ms"`
	}
}

type handshakeVector struct {
	Prologue        hexBytes
	Static          hexBytes
	ServerPublic    hexBytes `json:"server_public"`
	ClientEphemeral hexBytes `json:"client_ephemeral"`
	ServerEphemeral hexBytes `json:"server_ephemeral"`
	HelloPayload    hexBytes `json:"hello_payload"`
	WelcomePayload  hexBytes `json:"welcome_payload"`
	Hello, Welcome  hexBytes
	ToServer        hexBytes `json:"to_server"`
	ToClient        hexBytes `json:"to_client"`
}

type hexBytes []byte

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	data := check.Value(os.ReadFile("testdata/vectors.json"))(t)
	var v vectors
	check.Must(t, json.Unmarshal(data, &v))
	return v
}

// sframeAEAD returns RFC 9605's suite of that number, which may have a tag that no [Suite] has.
func sframeAEAD(t testing.TB, sframe uint16, key, salt []byte) aead {
	t.Helper()
	for suite := range Suite(len(suites)) {
		if suites[suite].sframe == sframe {
			return newAEAD(suite, key, salt)
		}
	}
	size := map[uint16]int{1: 10, 3: 4}[sframe]
	if size == 0 {
		t.Fatal("no such suite:", sframe)
	}
	return aead{small: newCTRHMAC(key, size), salt: [saltSize]byte(salt)}
}

func TestAEADVectors(t *testing.T) {
	for _, v := range readVectors(t).AEAD {
		a := sframeAEAD(t, v.SFrame, v.Key, v.Nonce) // under number 0 the salt is the nonce
		checkAEAD(t, v.SFrame, a, v.AAD, v.Plain, v.Sealed, 0)
	}
}

func TestDatagramVectors(t *testing.T) {
	bySFrame := map[uint16]Suite{}
	for _, suite := range realSuites {
		bySFrame[suites[suite].sframe] = suite
	}
	sealers, openers := map[Suite]*Sealer{}, map[Suite]*Opener{}
	for _, v := range readVectors(t).Datagram {
		suite := bySFrame[v.SFrame]
		if sealers[suite] == nil {
			sealers[suite] = NewSealer(suite, [32]byte(v.Secret))
			openers[suite] = NewOpener(suite, [32]byte(v.Secret))
		}
		if got := sealers[suite].Seal(nil, v.AAD, v.Plain, v.Number); !bytes.Equal(got, v.Sealed) {
			t.Errorf("%v, number %#x: sealed %x, want %x", suite, v.Number, got, v.Sealed)
		}
		if got, ok := openers[suite].Open(nil, v.AAD, v.Sealed, v.Number); !ok || !bytes.Equal(got, v.Plain) {
			t.Errorf("%v, number %#x: opened %x, %v", suite, v.Number, got, ok)
		}
	}
	if len(sealers) != len(realSuites) {
		t.Errorf("vectors of %d suites, want %d", len(sealers), len(realSuites))
	}
}

func TestHandshakeVectors(t *testing.T) {
	for _, v := range readVectors(t).Handshake {
		key := NewStaticKey([32]byte(v.Static))
		if public := key.Public(); !bytes.Equal(public[:], v.ServerPublic) {
			t.Errorf("public key %x, want %x", public, v.ServerPublic)
		}
		i := NewInitiator(bytes.NewReader(v.ClientEphemeral), key.Public(), v.Prologue)
		hello, err := i.Hello(nil, v.HelloPayload)
		if err != nil || !bytes.Equal(hello, v.Hello) {
			t.Fatalf("hello %x, %v; want %x", hello, err, v.Hello)
		}
		r := NewResponder(bytes.NewReader(v.ServerEphemeral), key, v.Prologue)
		if payload, err := r.Hello(v.Hello); err != nil || !bytes.Equal(payload, v.HelloPayload) {
			t.Fatalf("hello's payload %x, %v; want %x", payload, err, v.HelloPayload)
		}
		want := Secrets{ToServer: [32]byte(v.ToServer), ToClient: [32]byte(v.ToClient)}
		welcome, secrets, err := r.Welcome(nil, v.WelcomePayload)
		if err != nil || !bytes.Equal(welcome, v.Welcome) || secrets != want {
			t.Fatalf("welcome %x, %x, %v; want %x, %x", welcome, secrets, err, v.Welcome, want)
		}
		payload, secrets, err := i.Welcome(v.Welcome)
		if err != nil || !bytes.Equal(payload, v.WelcomePayload) || secrets != want {
			t.Fatalf("welcome's payload %x, %x, %v; want %x, %x", payload, secrets, err, v.WelcomePayload, want)
		}
	}
}

func TestCookieVectors(t *testing.T) {
	start := time.Unix(1e9, 0)
	for _, v := range readVectors(t).Cookie {
		c := NewCookies(bytes.NewReader(bytes.Repeat(v.Secret, 2)), start)
		now := start.Add(time.Duration(v.At) * time.Millisecond)
		if got := c.Make(v.Addr, v.Nonce, now); !bytes.Equal(got[:], v.Cookie) {
			t.Errorf("cookie of %v: %x, want %x", v.Addr, got, v.Cookie)
		}
		if !c.Check([CookieSize]byte(v.Cookie), v.Addr, v.Nonce, now) {
			t.Errorf("cookie of %v is refused", v.Addr)
		}
	}
}
