package seal

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"io"

	"github.com/flynn/noise"
)

// StaticKey is a server's X25519 key pair, of which clients know the public half.
type StaticKey struct {
	pair noise.DHKey
}

// NewStaticKey returns the key pair of a private key: any 32 bytes are one.
func NewStaticKey(private [32]byte) StaticKey {
	key := must(ecdh.X25519().NewPrivateKey(private[:]))
	return StaticKey{pair: noise.DHKey{Private: key.Bytes(), Public: key.PublicKey().Bytes()}}
}

// Public returns the public key.
func (k StaticKey) Public() [32]byte { return [32]byte(k.pair.Public) }

// Responder is the server's side of one handshake: first [Responder.Hello], then [Responder.Welcome].
// It is not safe for concurrent use.
type Responder struct {
	cfg   noise.Config
	state *noise.HandshakeState // nil until a hello was read, and after the welcome
}

// NewResponder returns the server's side of a handshake. The prologue is that of [NewInitiator]. Random
// gives the ephemeral key: nil is crypto/rand.
func NewResponder(random io.Reader, key StaticKey, prologue []byte) *Responder {
	if random == nil {
		random = rand.Reader
	}
	return &Responder{cfg: noise.Config{
		CipherSuite:   noiseSuite,
		Random:        random,
		Pattern:       noise.HandshakeNK,
		Prologue:      bytes.Clone(prologue),
		StaticKeypair: key.pair,
	}}
}

// Hello reads a client's first message and returns its payload, or [ErrHandshake]. That a client can
// make one says nothing of who it is, and the message may be a copy of an older one.
func (r *Responder) Hello(msg []byte) (payload []byte, err error) {
	r.state = nil
	if len(msg) < HandshakeOverhead {
		return nil, ErrHandshake
	}
	state, err := noise.NewHandshakeState(r.cfg)
	if err != nil {
		return nil, err
	}
	payload, _, _, err = state.ReadMessage(nil, msg)
	if err != nil {
		return nil, ErrHandshake
	}
	r.state = state
	return payload, nil
}

// Welcome appends the answer to dst, [HandshakeOverhead] bytes longer than its payload, which only the
// client that sent the hello can read. It is called once after each hello that was read; it panics
// without one. The error is that of the random source.
func (r *Responder) Welcome(dst, payload []byte) ([]byte, Secrets, error) {
	if r.state == nil {
		panic("seal: a welcome without a hello")
	}
	state := r.state
	r.state = nil
	msg, toServer, toClient, err := state.WriteMessage(dst, payload)
	if err != nil {
		return dst, Secrets{}, err
	}
	return msg, newSecrets(toServer, toClient, state.ChannelBinding()), nil
}
