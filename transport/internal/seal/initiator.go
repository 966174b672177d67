package seal

import (
	"bytes"
	"crypto/rand"
	"io"

	"github.com/flynn/noise"
)

// Initiator is the client's side of one handshake: first [Initiator.Hello], then [Initiator.Welcome].
// It is not safe for concurrent use.
type Initiator struct {
	cfg     noise.Config
	state   *noise.HandshakeState // nil before the hello and after the welcome
	payload []byte                // of the hello
}

// NewInitiator returns the client's side of a handshake with the server of that public key. Both ends
// must have the same prologue, which names the protocol and its version. Random gives the ephemeral
// key: nil is crypto/rand.
func NewInitiator(random io.Reader, serverPublic [32]byte, prologue []byte) *Initiator {
	if random == nil {
		random = rand.Reader
	}
	return &Initiator{cfg: noise.Config{
		CipherSuite: noiseSuite,
		Random:      random,
		Pattern:     noise.HandshakeNK,
		Initiator:   true,
		Prologue:    bytes.Clone(prologue),
		PeerStatic:  bytes.Clone(serverPublic[:]),
	}}
}

// Hello appends the first message to dst, [HandshakeOverhead] bytes longer than its payload, which only
// the server can read. Somebody who gets hold of the server's private key later can read it too, and
// anyone can send a copy of it. It is called once: who repeats a hello sends the same bytes. The error is
// that of the random source, or the server's public key is none.
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

// Welcome reads the server's message and returns its payload and the secrets, once. After an
// [ErrHandshake] it can be called with another message: what a stranger sends spoils nothing.
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

// restore brings back the state after the hello: a message with a bad key spoils it.
func (i *Initiator) restore() {
	cfg := i.cfg
	cfg.Random = bytes.NewReader(i.state.LocalEphemeral().Private)
	i.state = must(noise.NewHandshakeState(cfg))
	_, _, _, err := i.state.WriteMessage(nil, i.payload)
	must(0, err)
}
