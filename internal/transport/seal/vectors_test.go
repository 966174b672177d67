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

// aeadFile is aead.json of testdata/vectors, which check.py beside it writes.
type aeadFile struct {
	AEAD []struct {
		SFrame                         uint16
		Key, Nonce, AAD, Plain, Sealed hexBytes
	}
	Cookie []struct {
		Secret, Cookie hexBytes
		Addr           netip.AddrPort
		Nonce          uint64
		At             int64 `json:"at_ms"`
	}
}

type hexBytes []byte

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

func readVectors(t testing.TB) aeadFile {
	t.Helper()
	data := check.Value(os.ReadFile("../../../testdata/vectors/aead.json"))(t)
	var v aeadFile
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
