package token

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
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
			if i == 0 || i == minHead-1 {
				want = ErrMalformed // the version, and the size of the route id
			}
			if !errors.Is(err, want) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

func TestOpenErrors(t *testing.T) {
	sealed := mustIssue(t, testKey.Issuer(), valid()).Sealed()
	other := bytes.Clone(sealed)
	other[0] = 1
	bad := valid()
	bad.Expires = bad.Issued
	long := make([]byte, maxSealed+1)
	long[0] = version
	altered := bytes.Clone(sealed)
	altered[1] ^= 1
	private, shared := testKey.secrets().private, testKey.secrets().token
	tokenKey, privateKey := newKey(private, [32]byte{4, 5, 7}), newKey([32]byte{1, 2, 4}, shared)
	named := func(key Key) string {
		return fmt.Sprintf("%v: it names the key %v, not %v", ErrWrongKey, testKey.ID(), key.ID())
	}
	for _, test := range []struct {
		name   string
		key    Key
		sealed []byte
		want   string
	}{
		{"no key", Key{}, sealed, ErrNoKey.Error()},
		{"another token key", tokenKey, sealed, named(tokenKey)},
		{"another private key", privateKey, sealed, named(privateKey)},
		{"an altered key id", testKey, altered, ErrWrongKey.Error() + ": it names the key "},
		{"nothing", testKey, nil, "malformed token or key: sealed: 0 bytes, want 79 to 528"},
		{"cut", testKey, sealed[:len(sealed)-1], "malformed token or key: sealed: 78 bytes"},
		{"grown", testKey, append(bytes.Clone(sealed), 0), ErrWrongKey.Error()},
		{"the longest", testKey, long[:maxSealed], ErrWrongKey.Error()},
		{"too long", testKey, long, "malformed token or key: sealed: 529 bytes"},
		{"version", testKey, other, "malformed token or key: sealed: version 1, want 2: was it issued by another version of uplink?"},
		{"no claims", testKey, seal(testKey.Issuer(), &Claims{}, new([nonceLen]byte)), "malformed token or key: sealed: 72 bytes"},
		{"claims", testKey, seal(testKey.Issuer(), &bad, new([nonceLen]byte)), "malformed token or key: claims: Expires: "},
	} {
		before := bytes.Clone(test.sealed)
		_, _, err := test.key.Open(test.sealed)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) || !bytes.Equal(test.sealed, before) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	if _, err := Issue(IssuerKey{}, valid()); !errors.Is(err, ErrNoKey) {
		t.Errorf("Issue without a key: %v", err)
	}
}

// TestOwnMemory checks that nothing that a caller holds is part of a token or of claims, and that
// equal claims make tokens of their own.
func TestOwnMemory(t *testing.T) {
	c := valid()
	c.UserData = []byte("blue")
	token, other := mustIssue(t, testKey.Issuer(), c), mustIssue(t, testKey.Issuer(), c)
	if token.ID() == other.ID() || bytes.Equal(token.Sealed()[30:], other.Sealed()[30:]) || len(token.ID().String()) != 32 {
		t.Errorf("twice %v", token.ID())
	}
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
