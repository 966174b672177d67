package token

import (
	"bytes"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

func TestNewKey(t *testing.T) {
	a := check.Value(NewKey())(t)
	b := check.Value(NewKey())(t)
	if a.Equal(b) || a.secrets().private == b.secrets().private || a.secrets().token == b.secrets().token || a.secrets().private == a.secrets().token || a.IsZero() {
		t.Error("keys are not made of fresh bytes")
	}
	if _, _, err := a.Open(mustIssue(t, a.Issuer(), valid()).Sealed()); err != nil {
		t.Error(err)
	}
}

func TestEqual(t *testing.T) {
	same := newKey(testKey.secrets().private, testKey.secrets().token)
	private := newKey([32]byte{9}, testKey.secrets().token)
	shared := newKey(testKey.secrets().private, [32]byte{9})
	for _, test := range []struct {
		name string
		a, b Key
		want bool
	}{
		{"itself", testKey, testKey, true},
		{"the same", testKey, same, true},
		{"another private key", testKey, private, false},
		{"another token key", testKey, shared, false},
		{"none", testKey, Key{}, false},
		{"both none", Key{}, Key{}, true},
	} {
		if test.a.Equal(test.b) != test.want || test.b.Equal(test.a) != test.want {
			t.Errorf("Key, %s: not %v", test.name, test.want)
		}
		if a, b := test.a.Issuer(), test.b.Issuer(); a.Equal(b) != test.want || b.Equal(a) != test.want {
			t.Errorf("IssuerKey, %s: not %v", test.name, test.want)
		}
	}
}

func TestZero(t *testing.T) {
	var k Key
	if !k.IsZero() || k.Secret() != "" || k.Public() != [32]byte{} || k.Private() != [32]byte{} || k.String() != "token.Key(none)" {
		t.Errorf("%v: %q", k, k.Secret())
	}
	issuer := k.Issuer()
	if !issuer.IsZero() || issuer.Secret() != "" || issuer.Public() != [32]byte{} || issuer.String() != "token.IssuerKey(none)" {
		t.Errorf("%v: %q", issuer, issuer.Secret())
	}
	var token Token
	if !token.IsZero() || token.String() != "" || token.Sealed() != nil || token.ID() != (ID{}) ||
		token.ServerKey() != [32]byte{} || !token.Expires().IsZero() || token.LogValue().String() != "token.Token(none)" {
		t.Errorf("%q, expires %v", token, token.Expires())
	}
	for _, m := range []interface{ MarshalText() ([]byte, error) }{k, issuer, token} {
		if text, err := m.MarshalText(); err != nil || !bytes.Equal(text, nil) {
			t.Errorf("%T: %q, %v", m, text, err)
		}
	}
}
