package seal

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

var (
	allSuites   = []Suite{None, AES128GCM, AES128CTRHMAC8, ChaCha20Poly1305, ChaCha20SipHash8}
	realSuites  = allSuites[1:]
	testSecrets = Secrets{ToServer: [32]byte{1}, ToClient: [32]byte{2}}
)

func TestOpenGivesWhatWasSealed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		suite := rapid.SampledFrom(allSuites).Draw(t, "suite")
		s, o := NewSealer(suite, testSecrets.ToServer), NewOpener(suite, testSecrets.ToServer)
		if s.Suite() != suite || o.Suite() != suite {
			t.Fatalf("made with %v: sealer %v, opener %v", suite, s.Suite(), o.Suite())
		}
		number := uint64(0)
		for range rapid.IntRange(1, 4).Draw(t, "datagrams") {
			number += rapid.Uint64Range(1, 1<<19).Draw(t, "gap")
			header := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "header")
			plain := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "plain")
			sealed := s.Seal(nil, header, plain, number)
			if len(sealed) != len(plain)+suite.Overhead() {
				t.Fatalf("%d bytes became %d, want %d more", len(plain), len(sealed), suite.Overhead())
			}

			// In place: the datagram is built and taken apart in one array.
			built := append(append(make([]byte, 0, len(header)+len(sealed)), header...), plain...)
			if again := resealed(s, built[:len(header)], built[len(header):], number); !bytes.Equal(again[len(header):], sealed) ||
				!bytes.Equal(again[:len(header)], header) {
				t.Fatalf("sealed in place %x, else %x", again, sealed)
			}
			got, ok := o.Open([]byte("before"), header, sealed, number)
			if !ok || !bytes.Equal(got, append([]byte("before"), plain...)) {
				t.Fatalf("opened %x, %v; want %x", got, ok, plain)
			}
			if got, ok := o.Open(sealed[:0], header, sealed, number); !ok || !bytes.Equal(got, plain) {
				t.Fatalf("opened in place %x, %v; want %x", got, ok, plain)
			}
		}
	})
}

// resealed seals once more under a number that was just used.
func resealed(s *Sealer, header, plain []byte, number uint64) []byte {
	s.next = number
	return s.Seal(header, header, plain, number)
}

func TestAnyFlippedBitIsRefused(t *testing.T) {
	for _, suite := range realSuites {
		header, plain, number := []byte{0x05, 0x12, 0x34}, []byte("twenty bytes or more"), uint64(0x51234)
		sealed := NewSealer(suite, testSecrets.ToServer).Seal(nil, header, plain, number)
		o := NewOpener(suite, testSecrets.ToServer)
		refused := func(what string, header, sealed []byte, number uint64) {
			t.Helper()
			if got, ok := o.Open([]byte("x"), header, sealed, number); ok || string(got) != "x" {
				t.Errorf("%v: %s: %x, %v", suite, what, got, ok)
			}
		}
		for bit := range 8 * len(header) {
			refused("header", flipped(header, bit), sealed, number)
		}
		for bit := range 8 * len(sealed) {
			refused("body or tag", header, flipped(sealed, bit), number)
		}
		for bit := range 64 {
			refused("number", header, sealed, number^1<<bit)
		}
		for size := range len(sealed) {
			refused("shortened", header, sealed[:size], number)
		}
		refused("lengthened", header, append(bytes.Clone(sealed), 0), number)
		refused("longer header", append(bytes.Clone(header), 0), sealed, number)
		refused("a byte from the body to the header", append(bytes.Clone(header), sealed[0]), sealed[1:], number)
		if got, ok := o.Open(nil, header, sealed, number); !ok || !bytes.Equal(got, plain) {
			t.Errorf("%v: the datagram itself is refused", suite)
		}
	}
}

func flipped(b []byte, bit int) []byte {
	b = bytes.Clone(b)
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

func TestOtherKeysAreRefused(t *testing.T) {
	for _, suite := range realSuites {
		for _, number := range []uint64{0, 5, 1 << EpochBits} {
			sealed := NewSealer(suite, testSecrets.ToServer).Seal(nil, nil, []byte("plain"), number)
			if _, ok := NewOpener(suite, testSecrets.ToClient).Open(nil, nil, sealed, number); ok {
				t.Errorf("%v: opened in the other direction", suite)
			}
			if _, ok := NewOpener(suite, [32]byte{3}).Open(nil, nil, sealed, number); ok {
				t.Errorf("%v: opened by another session", suite)
			}
			for _, other := range realSuites {
				if _, ok := NewOpener(other, testSecrets.ToServer).Open(nil, nil, sealed, number); ok != (other == suite) {
					t.Errorf("sealed with %v, opened with %v: %v", suite, other, ok)
				}
			}
		}
	}
}

func TestNumberUsedTwice(t *testing.T) {
	s := NewSealer(AES128GCM, testSecrets.ToServer)
	s.Seal(nil, nil, nil, 7)
	check.Panics(t, func() { s.Seal(nil, nil, nil, 7) })
	check.Panics(t, func() { s.Seal(nil, nil, nil, 6) })
	s.Seal(nil, nil, nil, 8)
}

func TestNothingIsAllocated(t *testing.T) {
	for _, suite := range allSuites {
		for _, size := range []int{20, 250, 1180} {
			s, o := NewSealer(suite, testSecrets.ToServer), NewOpener(suite, testSecrets.ToServer)
			buf := make([]byte, 3+size, 3+size+suite.Overhead())
			number := uint64(0)
			check.NoAllocs(t, func() {
				datagram := s.Seal(buf[:3], buf[:3], buf[3:], number)
				for range 2 { // the second time it is not authentic
					o.Open(datagram[3:3], datagram[:3], datagram[3:], number)
					datagram[0] ^= 1
				}
				number++
			})
		}
	}
}
