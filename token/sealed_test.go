package token

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"

	"pgregory.net/rapid"
)

// TestAltered changes one byte of what is sealed: it does not open, and the error is one.
func TestAltered(t *testing.T) {
	sealed := mustIssue(t, testKey.Issuer(), valid()).Sealed()
	for i := range sealed {
		for bit := range 8 {
			altered := bytes.Clone(sealed)
			altered[i] ^= 1 << bit
			_, _, err := testKey.Open(altered)
			want := ErrWrongKey
			if i == 0 {
				want = ErrMalformed // the version
			}
			if !errors.Is(err, want) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

func TestCutOrGrown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawClaims(t)
		token := check.Value(Issue(testKey.Issuer(), c))(t)
		sealed := token.Sealed()
		n := rapid.IntRange(0, MaxSealed+10).Draw(t, "length")
		if n == len(sealed) {
			return
		}
		changed := append(sealed, make([]byte, MaxSealed+10)...)[:n]
		before := bytes.Clone(changed)
		_, _, err = testKey.Open(changed)
		want := ErrWrongKey
		if n < minSealed || n > MaxSealed {
			want = ErrMalformed
		}
		if !errors.Is(err, want) || !bytes.Equal(changed, before) {
			t.Fatalf("%d bytes: %v, want %v", n, err, want)
		}
	})
}

// TestForeign opens with keys that share a half with the right one.
func TestForeign(t *testing.T) {
	sealed := mustIssue(t, testKey.Issuer(), valid()).Sealed()
	for name, k := range map[string]Key{
		"another token key":   newKey(testKey.secrets().private, [32]byte{4, 5, 7}),
		"another private key": newKey([32]byte{1, 2, 4}, testKey.secrets().token),
		"development":         Development(),
	} {
		if _, _, err := k.Open(sealed); !errors.Is(err, ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := testKey.Open(sealed); err != nil {
		t.Errorf("the right key: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	sealed := mustIssue(t, testKey.Issuer(), valid()).Sealed()
	other := bytes.Clone(sealed)
	other[0] = 2
	for _, test := range []struct {
		name   string
		key    Key
		sealed []byte
		want   string
	}{
		{"no key", Key{}, sealed, ErrNoKey.Error()},
		{"nothing", testKey, nil, "token: malformed: sealed: 0 bytes, want 73 to 474"},
		{"version", testKey, other, "token: malformed: sealed: version 2, want 1: was it issued by another version of uplink?"},
		{"claims", testKey, seal(testKey.Issuer(), &Claims{}, new([nonceLen]byte)), "token: malformed: sealed: 66 bytes"},
	} {
		if _, _, err := test.key.Open(test.sealed); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	bad := valid()
	bad.Expires = bad.Issued
	if _, _, err := testKey.Open(seal(testKey.Issuer(), &bad, new([nonceLen]byte))); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "claims: Expires: ") {
		t.Errorf("claims sealed unchecked: %v", err)
	}
	if _, err := Issue(IssuerKey{}, valid()); !errors.Is(err, ErrNoKey) {
		t.Errorf("Issue without a key: %v", err)
	}
}

// TestNames shows that equal claims make tokens of their own.
func TestNames(t *testing.T) {
	a, b := mustIssue(t, testKey.Issuer(), valid()), mustIssue(t, testKey.Issuer(), valid())
	if a == b || a.ID() == b.ID() || bytes.Equal(a.Sealed()[25:], b.Sealed()[25:]) {
		t.Errorf("twice %v", a.ID())
	}
	if s := a.ID().String(); len(s) != 32 {
		t.Errorf("an ID is written %s", s)
	}
}

// TestOwnMemory shows that nothing that a caller holds is part of a token or of claims.
func TestOwnMemory(t *testing.T) {
	c := valid()
	c.UserData = []byte("blue")
	token := mustIssue(t, testKey.Issuer(), c)
	text := token.String()
	clear(c.UserData)
	clear(token.Sealed())
	sealed := token.Sealed()
	got, _, err := testKey.Open(sealed)
	clear(sealed)
	if err != nil || string(got.UserData) != "blue" || token.String() != text {
		t.Errorf("%q, %v", got.UserData, err)
	}
}

func BenchmarkOpen(b *testing.B) {
	sealed := mustIssue(b, testKey.Issuer(), valid()).Sealed()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := testKey.Open(sealed); err != nil {
			b.Fatal(err)
		}
	}
}
