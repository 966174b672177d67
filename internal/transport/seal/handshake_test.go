package seal

import (
	"bytes"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

var (
	testPrologue = []byte("uplink 4")
	testKey      = NewStaticKey([32]byte{1, 2, 3})
)

// pair is a handshake up to the welcome, which the client has not read yet.
type pair struct {
	initiator      *Initiator
	hello, welcome []byte
	secrets        Secrets
}

func newPair(t testing.TB) pair {
	t.Helper()
	p := pair{initiator: NewInitiator(nil, testKey.Public(), testPrologue)}
	p.hello = bytes.TrimPrefix(check.Value(p.initiator.Hello([]byte("in front"), []byte("the token")))(t), []byte("in front"))
	p.welcome, p.secrets = respond(t, p.hello)
	return p
}

// respond is the server's side.
func respond(t testing.TB, hello []byte) (welcome []byte, secrets Secrets) {
	t.Helper()
	r := NewResponder(nil, testKey, testPrologue)
	if payload, err := r.Hello(hello); err != nil || string(payload) != "the token" {
		t.Fatalf("hello: %q, %v", payload, err)
	}
	welcome, secrets, err := r.Welcome([]byte("in front"), []byte("the id"))
	check.Must(t, err)
	return bytes.TrimPrefix(welcome, []byte("in front")), secrets
}

// finish lets the client read the welcome.
func (p *pair) finish(t testing.TB) {
	t.Helper()
	payload, secrets, err := p.initiator.Welcome(p.welcome)
	if err != nil || string(payload) != "the id" || secrets != p.secrets {
		t.Fatalf("welcome: %q, %v; same secrets: %v", payload, err, secrets == p.secrets)
	}
}

func TestHandshake(t *testing.T) {
	p, other := newPair(t), newPair(t)
	p.finish(t)
	other.finish(t)
	if len(p.hello) != len("the token")+HandshakeOverhead || len(p.welcome) != len("the id")+HandshakeOverhead {
		t.Errorf("hello of %d bytes, welcome of %d", len(p.hello), len(p.welcome))
	}
	seen := map[[32]byte]bool{}
	for _, s := range []Secrets{p.secrets, other.secrets} {
		seen[s.ToClient], seen[s.ToServer] = true, true
	}
	if len(seen) != 4 || seen[[32]byte{}] {
		t.Error("two handshakes do not have four secrets")
	}
	if bytes.Contains(p.hello, []byte("token")) || bytes.Contains(p.welcome, []byte("id")) {
		t.Error("a payload is readable")
	}
}

func TestHelloThatIsNotForThisServer(t *testing.T) {
	p := newPair(t)
	for name, r := range map[string]*Responder{
		"other key":      NewResponder(nil, NewStaticKey([32]byte{4}), testPrologue),
		"other prologue": NewResponder(nil, testKey, []byte("uplink 3")),
	} {
		if _, err := r.Hello(p.hello); !errors.Is(err, ErrHandshake) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := NewResponder(nil, testKey, testPrologue)
	for bit := range 8 * len(p.hello) {
		if _, err := r.Hello(flipped(p.hello, bit)); !errors.Is(err, ErrHandshake) {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
	for size := range len(p.hello) {
		if _, err := r.Hello(p.hello[:size]); !errors.Is(err, ErrHandshake) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := r.Hello(p.hello); err != nil {
		t.Errorf("the hello itself: %v", err)
	}
}

// TestWelcomeAfterForgeries: what anyone can send to a waiting client does not keep it from reading
// the right welcome.
func TestWelcomeAfterForgeries(t *testing.T) {
	p, other := newPair(t), newPair(t)
	forged := [][]byte{nil, make([]byte, HandshakeOverhead-1), make([]byte, 80), other.welcome, p.hello, p.welcome[:len(p.welcome)-1]}
	for bit := range 8 * len(p.welcome) {
		forged = append(forged, flipped(p.welcome, bit))
	}
	for i, msg := range forged {
		if _, _, err := p.initiator.Welcome(msg); !errors.Is(err, ErrHandshake) {
			t.Fatalf("forgery %d: %v", i, err)
		}
	}
	p.finish(t)
}

func TestMessagesOutOfTurn(t *testing.T) {
	i := NewInitiator(nil, testKey.Public(), testPrologue)
	if _, _, err := i.Welcome(make([]byte, 80)); !errors.Is(err, ErrHandshake) {
		t.Errorf("a welcome before the hello: %v", err)
	}
	p := newPair(t)
	p.finish(t)
	for range 2 {
		if _, _, err := p.initiator.Welcome(p.welcome); !errors.Is(err, ErrHandshake) {
			t.Errorf("a welcome once more: %v", err)
		}
	}
	r := NewResponder(nil, testKey, testPrologue)
	check.Panics(t, func() { _, _, _ = r.Welcome(nil, nil) })
	check.Value(r.Hello(p.hello))(t)
	if _, err := r.Hello(make([]byte, 80)); !errors.Is(err, ErrHandshake) {
		t.Fatal(err)
	}
	check.Panics(t, func() { _, _, _ = r.Welcome(nil, nil) }) // not to the hello before
}

func TestHandshakeErrors(t *testing.T) {
	broken := iotest.ErrReader(errors.New("no entropy"))
	if dst, err := NewInitiator(broken, testKey.Public(), nil).Hello([]byte("x"), nil); err == nil || string(dst) != "x" {
		t.Errorf("hello without entropy: %q, %v", dst, err)
	}
	if _, err := NewInitiator(nil, [32]byte{}, nil).Hello(nil, nil); err == nil {
		t.Error("a hello to the server key 0")
	}
	r := NewResponder(broken, testKey, testPrologue)
	check.Value(r.Hello(newPair(t).hello))(t)
	if dst, _, err := r.Welcome([]byte("x"), nil); err == nil || string(dst) != "x" {
		t.Errorf("welcome without entropy: %q, %v", dst, err)
	}
}

// TestStolenKey verifies forward secrecy: the server's static key decrypts the hello of a recorded
// handshake, but does not yield its secrets without the server's ephemeral key.
func TestStolenKey(t *testing.T) {
	p := newPair(t)
	if _, stolen := respond(t, p.hello); stolen.ToServer == p.secrets.ToServer || stolen.ToClient == p.secrets.ToClient {
		t.Error("the static key alone gives the secrets of a session")
	}
	p.finish(t)
}
