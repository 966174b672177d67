package seal

import (
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

func TestSuiteNames(t *testing.T) {
	for s, overhead := range map[Suite]int{None: 0, AES128GCM: 16, AES128CTRHMAC8: 8, ChaCha20Poly1305: 16, ChaCha20SipHash8: 8} {
		if got, err := ParseSuite(s.String()); got != s || err != nil || !s.Valid() || s.Overhead() != overhead {
			t.Errorf("%v: parsed %v, %v; valid %v, overhead %d", s, got, err, s.Valid(), s.Overhead())
		}
	}
	if s := Suite(5); s.Valid() || s.Overhead() != 0 || s.String() != "suite(5)" {
		t.Errorf("%v: valid %v, overhead %d", s, s.Valid(), s.Overhead())
	}
	if _, err := ParseSuite("suite(5)"); err == nil {
		t.Error("a suite that does not exist was parsed")
	}
}

func TestSuiteThatDoesNotExist(t *testing.T) {
	check.Panics(t, func() { NewSealer(Suite(5), [32]byte{}) })
	check.Panics(t, func() { NewOpener(Suite(5), [32]byte{}) })
}
