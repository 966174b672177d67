package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// TestSipHashReference compares with the 64 vectors of the reference implementation, veorq/SipHash,
// vectors.h: the texts of 0 to 63 bytes 0, 1, 2 and so on.
func TestSipHashReference(t *testing.T) {
	const want = "0226a91002af9775a791b3ec5a48e643f8848d2d5774dea9be3438d5786bb58e"
	var key [sipHashKeySize]byte
	var text, all []byte
	for i := range key {
		key[i] = byte(i)
	}
	for i := range 64 {
		h := newSipHash(&key)
		h.write(text)
		all = binary.LittleEndian.AppendUint64(all, h.sum())
		text = append(text, byte(i))
	}
	if got := sha256.Sum256(all); hex.EncodeToString(got[:]) != want {
		t.Errorf("SHA-256 of the vectors %x, want %s", got, want)
	}
	if want := []byte{0xa1, 0x29, 0xca, 0x61, 0x49, 0xbe, 0x45, 0xe5}; binary.LittleEndian.Uint64(all[15*8:]) != binary.BigEndian.Uint64(want) {
		t.Errorf("15 bytes: %x, the paper has %x", all[15*8:16*8], want)
	}
}

// TestSipHashWrites divides a text into several writes.
func TestSipHashWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := [sipHashKeySize]byte{1, 2, 3}
		whole, parts := newSipHash(&key), newSipHash(&key)
		var text []byte
		for _, part := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 30), 0, 6).Draw(t, "parts") {
			parts.write(part)
			text = append(text, part...)
		}
		whole.write(text)
		if whole.sum() != parts.sum() {
			t.Fatalf("%x in one write: %x, in several: %x", text, whole.sum(), parts.sum())
		}
	})
}

// TestRFC8439 is the example of RFC 8439, section 2.8.2.
func TestRFC8439(t *testing.T) {
	key := unhex(t, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f")
	a := newAEAD(ChaCha20Poly1305, key, unhex(t, "070000004041424344454647"))
	plain := []byte("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.")
	sealed := unhex(t, "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b"+
		"1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116"+
		"1ae10b594f09e26a7e902ecbd0600691")
	checkAEAD(t, sframeChaChaPoly, a, unhex(t, "50515253c0c1c2c3c4c5c6c7"), plain, sealed, 0)
}

// TestChaCha20 compares the key stream with RFC 8439, appendix A.1, vector 1: block 0 of a key and
// nonce of zeros, whose first 16 bytes are the key of the tag.
func TestChaCha20(t *testing.T) {
	block := unhex(t, "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"+
		"da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586")
	a := newAEAD(ChaCha20SipHash8, make([]byte, 32), make([]byte, saltSize))
	sealed := a.seal(nil, []byte("header"), make([]byte, 48), 0)
	h := newSipHash((*[sipHashKeySize]byte)(block))
	h.write(append(append([]byte("header"), block[sipHashKeySize:]...), byte(len("header"))))
	if want := binary.LittleEndian.AppendUint64(block[sipHashKeySize:], h.sum()); !bytes.Equal(sealed, want) {
		t.Errorf("sealed %x, want %x", sealed, want)
	}
}

// TestNoiseVectors is a vector of flynn/noise, vectors.txt, for Noise_NK_25519_ChaChaPoly_SHA256
// with the prologue "notsecret".
func TestNoiseVectors(t *testing.T) {
	ascending := func(from byte) []byte {
		b := make([]byte, 32)
		for i := range b {
			b[i] = from + byte(i)
		}
		return b
	}
	key, prologue := NewStaticKey([32]byte(ascending(0x01))), []byte("notsecret")
	hello := check.Value(NewInitiator(bytes.NewReader(ascending(0x20)), key.Public(), prologue).Hello(nil, []byte("test_msg_0")))(t)
	if want := unhex(t, "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254"+
		"3e44c6b6a0a9a28f5dafb35dfe4f2cf52995fadd57f0a4006d1c"); !bytes.Equal(hello, want) {
		t.Errorf("hello %x, want %x", hello, want)
	}
	r := NewResponder(bytes.NewReader(ascending(0x41)), key, prologue)
	check.Value(r.Hello(hello))(t)
	welcome, _, err := r.Welcome(nil, []byte("test_msg_1"))
	if want := unhex(t, "64b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d48466"+
		"6e1a02e46e9053fa2a81414fd4a5bd34dbd73cb3a6e1b896bce6"); err != nil || !bytes.Equal(welcome, want) {
		t.Errorf("welcome %x, %v; want %x", welcome, err, want)
	}
	if name := string(noiseSuite.Name()); name != "25519_ChaChaPoly_SHA256" {
		t.Errorf("cipher suite %s of Noise", name)
	}
}

// FuzzOpen opens any bytes with every suite: nothing is authentic, dst is returned as it was, and
// what is sealed of the same bytes opens.
func FuzzOpen(f *testing.F) {
	f.Add(uint8(ChaCha20SipHash8), []byte("hdr"), []byte("any bytes of more than the tag"), uint64(7))
	f.Add(uint8(ChaCha20Poly1305), []byte{}, []byte{}, uint64(1<<EpochBits))
	f.Add(uint8(AES128CTRHMAC8), []byte("hdr"), []byte("12345678"), uint64(0))
	f.Fuzz(func(t *testing.T, suite uint8, header, b []byte, number uint64) {
		number %= 2 << EpochBits
		s := realSuites[int(suite)%len(realSuites)]
		header = header[:min(len(header), 255)]
		o := NewOpener(s, [32]byte{1})
		if got, ok := o.Open([]byte("x"), header, b, number); ok || string(got) != "x" {
			t.Fatalf("%v: %x opens as %x", s, b, got)
		}
		sealed := NewSealer(s, [32]byte{1}).Seal(nil, header, b, number)
		if got, ok := o.Open(sealed[:0], header, sealed, number); !ok || !bytes.Equal(got, b) {
			t.Fatalf("%v: sealed bytes open as %x, %v; want %x", s, got, ok, b)
		}
	})
}
