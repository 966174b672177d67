package seal

import (
	"bytes"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// FuzzOpen: what opens is what the sealer makes of the same plain text, header and number, and what
// does not open leaves the opener as it was.
func FuzzOpen(f *testing.F) {
	for _, suite := range realSuites {
		for _, number := range []uint64{5, 1<<EpochBits + 5} {
			sealed := NewSealer(suite, testSecrets.ToServer).Seal(nil, []byte("hdr"), []byte("plain text"), number)
			f.Add(uint8(suite), []byte("hdr"), sealed, number)
			f.Add(uint8(suite), []byte("hdr"), sealed[1:], number)
			f.Add(uint8(suite), []byte("hdr"), sealed[:5], number)
		}
	}
	f.Add(uint8(AES128GCM), []byte{}, []byte{}, uint64(1)<<63)
	f.Fuzz(func(t *testing.T, n uint8, header, sealed []byte, number uint64) {
		suite := realSuites[int(n)%len(realSuites)]
		s, o := NewSealer(suite, testSecrets.ToServer), NewOpener(suite, testSecrets.ToServer)
		first := s.Seal(nil, nil, []byte("first"), 0)
		plain, ok := o.Open([]byte("before"), header, sealed, number)
		if !bytes.HasPrefix(plain, []byte("before")) || !ok && len(plain) != len("before") {
			t.Fatalf("%v: opened %x", ok, plain)
		}
		if ok && !bytes.Equal(resealed(s, header, plain[len("before"):], number)[len(header):], sealed) {
			t.Fatalf("opened %x, which is not sealed like that", plain)
		}
		if _, ok := o.Open(nil, nil, first, 0); !ok {
			t.Fatal("number 0 does not open any more")
		}
	})
}

// FuzzInitiatorWelcome: only the genuine welcome is taken, and it is taken after any other message.
func FuzzInitiatorWelcome(f *testing.F) {
	v := readVectors(f).Handshake[1]
	f.Add([]byte(v.Welcome))
	f.Add([]byte(v.Welcome[:HandshakeOverhead]))
	f.Add([]byte(v.Hello))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, msg []byte) {
		i := NewInitiator(bytes.NewReader(v.ClientEphemeral), [32]byte(v.ServerPublic), v.Prologue)
		check.Value(i.Hello(nil, v.HelloPayload))(t)
		if _, _, err := i.Welcome(msg); (err == nil) != bytes.Equal(msg, v.Welcome) {
			t.Fatalf("welcome %x: %v", msg, err)
		} else if err == nil {
			return
		}
		if payload, _, err := i.Welcome(v.Welcome); err != nil || !bytes.Equal(payload, v.WelcomePayload) {
			t.Fatalf("after %x the right welcome: %x, %v", msg, payload, err)
		}
	})
}
