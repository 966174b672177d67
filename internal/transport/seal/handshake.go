package seal

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/flynn/noise"
)

// HandshakeOverhead is the overhead of each of the two messages of a handshake in bytes: an
// ephemeral key and a tag.
const HandshakeOverhead = 32 + 16

// ErrHandshake means that a message does not belong to this handshake. It is too short, altered,
// for another server key or prologue, or answers another hello. These cases cannot be
// distinguished.
var ErrHandshake = errors.New("seal: handshake message does not authenticate")

// Secrets are the result of a handshake at both ends: a secret for each direction, for [NewSealer]
// and [NewOpener]. They depend on the complete contents of both messages and the prologue.
type Secrets struct {
	ToServer, ToClient [32]byte
}

var noiseSuite = noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashSHA256)

// newSecrets derives the secrets from Noise's pair of keys and the hash of the transcript. Noise's
// keys depend only on the key exchange.
func newSecrets(toServer, toClient *noise.CipherState, transcript []byte) Secrets {
	return Secrets{
		ToServer: bind(toServer, transcript, "uplink to server"),
		ToClient: bind(toClient, transcript, "uplink to client"),
	}
}

func bind(state *noise.CipherState, transcript []byte, info string) [32]byte {
	key := state.UnsafeKey()
	return [32]byte(must(hkdf.Key(sha256.New, key[:], transcript, info, 32)))
}

// Initiator is the client's side of one handshake: first [Initiator.Hello], then
// [Initiator.Welcome]. It is not safe for concurrent use.
type Initiator struct {
	cfg     noise.Config
	state   *noise.HandshakeState // nil before the hello and after the welcome
	payload []byte                // payload of the hello
}

// NewInitiator returns the client's side of a handshake with the server that has the given public
// key. Both ends must use the same prologue, which contains the protocol and its version. random is
// the source of the ephemeral key; nil selects crypto/rand.
func NewInitiator(random io.Reader, serverPublic [32]byte, prologue []byte) *Initiator {
	return &Initiator{cfg: noise.Config{
		CipherSuite: noiseSuite,
		Random:      random,
		Pattern:     noise.HandshakeNK,
		Initiator:   true,
		Prologue:    bytes.Clone(prologue),
		PeerStatic:  bytes.Clone(serverPublic[:]),
	}}
}

// Hello appends the first message to dst. It is [HandshakeOverhead] bytes longer than its payload,
// which only the server can decrypt. There is no forward secrecy, and the message can be replayed.
// Call Hello once; a repeated hello must have the same bytes. An error is caused by the random
// source or an invalid public key.
func (i *Initiator) Hello(dst, payload []byte) ([]byte, error) {
	state, err := noise.NewHandshakeState(i.cfg)
	if err != nil {
		return dst, err
	}
	msg, _, _, err := state.WriteMessage(dst, payload)
	if err != nil {
		return dst, err
	}
	i.state, i.payload = state, bytes.Clone(payload)
	return msg, nil
}

// Welcome reads the server's message and returns its payload and the secrets. It succeeds once.
// After an [ErrHandshake] it can be called with another message, so forged messages have no effect.
func (i *Initiator) Welcome(msg []byte) (payload []byte, secrets Secrets, err error) {
	if i.state == nil || len(msg) < HandshakeOverhead {
		return nil, Secrets{}, ErrHandshake
	}
	payload, toServer, toClient, err := i.state.ReadMessage(nil, msg)
	if err != nil {
		i.restore()
		return nil, Secrets{}, ErrHandshake
	}
	secrets = newSecrets(toServer, toClient, i.state.ChannelBinding())
	i.state, i.payload = nil, nil
	return payload, secrets, nil
}

// restore restores the state after the hello. A message with an invalid key has modified it.
func (i *Initiator) restore() {
	cfg := i.cfg
	cfg.Random = bytes.NewReader(i.state.LocalEphemeral().Private)
	i.state = must(noise.NewHandshakeState(cfg))
	_, _, _, err := i.state.WriteMessage(nil, i.payload)
	must(0, err)
}

// StaticKey is a server's X25519 key pair, whose public half clients know.
type StaticKey struct {
	pair noise.DHKey
}

// NewStaticKey returns the key pair of a private key: any 32 bytes.
func NewStaticKey(private [32]byte) StaticKey {
	key := must(ecdh.X25519().NewPrivateKey(private[:]))
	return StaticKey{pair: noise.DHKey{Private: key.Bytes(), Public: key.PublicKey().Bytes()}}
}

// Public returns the public key.
func (k StaticKey) Public() [32]byte { return [32]byte(k.pair.Public) }

// Responder is the server's side of one handshake: first [Responder.Hello], then
// [Responder.Welcome]. It is not safe for concurrent use.
type Responder struct {
	cfg   noise.Config
	state *noise.HandshakeState // nil until a hello was read, and after the welcome
}

// NewResponder returns the server's side of a handshake. prologue must equal the client's. random
// is the source of the ephemeral key; nil selects crypto/rand.
func NewResponder(random io.Reader, key StaticKey, prologue []byte) *Responder {
	return &Responder{cfg: noise.Config{
		CipherSuite:   noiseSuite,
		Random:        random,
		Pattern:       noise.HandshakeNK,
		Prologue:      bytes.Clone(prologue),
		StaticKeypair: key.pair,
	}}
}

// Hello reads a client's first message and returns its payload, or [ErrHandshake]. The message
// does not authenticate the client, and may be a replay.
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

// Welcome appends the answer to dst. It is [HandshakeOverhead] bytes longer than its payload, which
// only the client of the hello can decrypt. Call it once after each successful Hello; otherwise it
// panics. An error is caused by the random source.
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
