package token

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
)

// FuzzParse reads a text as each kind, and one with a right check sum around a body. What is read
// is written as it was.
func FuzzParse(f *testing.F) {
	var seeds [][]byte
	for _, v := range vectorsOf(f) {
		for _, s := range []string{v.KeyText, v.IssuerKeyText, v.Token, "", "token.Key(development)"} {
			seeds = append(seeds, []byte(s+"\n"), []byte(s[:len(s)/2]))
		}
		seeds = append(seeds, make([]byte, 64), append(append(bytes.Clone(v.PublicKey), make([]byte, 8)...), v.Sealed...))
	}
	x := corpus.Target{Parser: "token", Seeds: seeds, Inputs: 20_000, Check: func(t testing.TB, in []byte) {
		for _, kind := range texts {
			for _, s := range []string{string(in), kind.form.encode(in)} {
				again, err := kind.parse(s)
				switch {
				case err != nil && (again != "" || !errors.Is(err, ErrMalformed)):
					t.Fatalf("%q: %q, %v", s, again, err)
				case err == nil && strings.TrimSpace(s) != again:
					t.Fatalf("%q is written as %q", s, again)
				}
			}
		}
	}}
	x.Run(f)
}

// FuzzOpen opens strangers' bytes. Whatever opens is what sealing its claims makes.
func FuzzOpen(f *testing.F) {
	for _, v := range vectorsOf(f) {
		f.Add([]byte(v.Sealed))
		f.Add([]byte(v.Sealed[:len(v.Sealed)-1]))
		f.Add(append([]byte(v.Sealed), 0))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{1}, maxSealed+1))
	key := Development()
	issuer := key.Issuer()
	f.Fuzz(func(t *testing.T, sealed []byte) {
		before := bytes.Clone(sealed)
		c, id, err := key.Open(sealed)
		if !bytes.Equal(sealed, before) {
			t.Fatal("Open changed its input")
		}
		if err != nil {
			if id != (ID{}) || c.Servers != nil || c.UserData != nil || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrWrongKey) {
				t.Fatalf("%+v, %v, %v", c, id, err)
			}
			return
		}
		if again := seal(issuer, &c, (*[nonceLen]byte)(sealed[minHead+len(c.Route):])); !bytes.Equal(again, sealed) || !bytes.Equal(id[:], sealed[minHead+len(c.Route):][:len(id)]) {
			t.Fatalf("%x became %x, id %v", sealed, again, id)
		}
	})
}

// FuzzClaims reads claims as an issuer with the right key may have sealed them.
func FuzzClaims(f *testing.F) {
	for _, v := range vectorsOf(f) {
		f.Add([]byte(v.Claims))
		f.Add([]byte(v.Claims[:len(v.Claims)-1]))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{6}, maxClaims+1))
	f.Fuzz(func(t *testing.T, plain []byte) {
		c, err := parseClaims(plain)
		if err != nil {
			if c.Servers != nil || c.UserData != nil || !errors.Is(err, ErrMalformed) {
				t.Fatalf("%+v, %v", c, err)
			}
			return
		}
		if len(c.Servers) > MaxServers || len(c.UserData) > MaxUserData {
			t.Fatalf("%d servers, %d bytes of user data", len(c.Servers), len(c.UserData))
		}
		if again := c.append(nil); !bytes.Equal(again, plain) {
			t.Fatalf("%x became %x", plain, again)
		}
		nonce := new([nonceLen]byte)
		if _, err := issue(testKey.Issuer(), c, nonce); err != nil {
			t.Fatalf("opened, but not issued: %v", err)
		}
	})
}
