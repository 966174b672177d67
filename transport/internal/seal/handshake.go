package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"

	"github.com/flynn/noise"
)

// HandshakeOverhead is by how many bytes each of the two messages of a handshake is longer than its
// payload: an ephemeral key and a tag.
const HandshakeOverhead = 32 + 16

// ErrHandshake is what a message gets that is not of this handshake: it is too short, was altered, is
// for another server key or another prologue, or answers another hello. These cannot be told apart.
var ErrHandshake = errors.New("seal: handshake message does not authenticate")

// Secrets is what a handshake gives both ends: a secret for each direction, for [NewSealer] and
// [NewOpener]. They depend on everything that both messages and the prologue said.
type Secrets struct {
	ToServer, ToClient [32]byte
}

var noiseSuite = noise.NewCipherSuite(noise.DH25519, noise.CipherAESGCM, noise.HashSHA256)

// newSecrets derives the secrets from the end of a handshake: Noise's own pair of keys depends on the
// key exchange alone, the hash is that of the whole transcript.
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
