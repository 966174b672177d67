package token

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// vector is one of testdata/tokens.json; its README says what the members are.
type vector struct {
	Name          string           `json:"name"`
	PrivateKey    hexBytes         `json:"private_key"`
	PublicKey     hexBytes         `json:"public_key"`
	TokenKey      hexBytes         `json:"token_key"`
	KeyID         hexBytes         `json:"key_id"`
	KeyText       string           `json:"key_text"`
	IssuerKeyText string           `json:"issuer_key_text"`
	Nonce         hexBytes         `json:"nonce"`
	ClientID      uint64           `json:"client_id"`
	IssuedMs      int64            `json:"issued_ms"`
	ExpiresMs     int64            `json:"expires_ms"`
	Servers       []netip.AddrPort `json:"servers"`
	UserData      hexBytes         `json:"user_data"`
	Route         hexBytes         `json:"route"`
	Claims        hexBytes         `json:"claims"`
	Sealed        hexBytes         `json:"sealed"`
	Token         string           `json:"token"`
	ID            hexBytes         `json:"id"`
}

type hexBytes []byte

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

func (v *vector) claims() Claims {
	return Claims{
		ClientID: v.ClientID, Issued: time.UnixMilli(v.IssuedMs).UTC(), Expires: time.UnixMilli(v.ExpiresMs).UTC(),
		Servers: v.Servers, UserData: v.UserData, Route: v.Route,
	}
}

func vectors(t testing.TB) (all []vector) {
	t.Helper()
	b := check.Value(os.ReadFile("testdata/tokens.json"))(t)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	check.Must(t, d.Decode(&all))
	return all
}

func (c *Claims) equal(o *Claims) bool {
	return c.ClientID == o.ClientID && c.Issued.Equal(o.Issued) && c.Expires.Equal(o.Expires) &&
		slices.Equal(c.Servers, o.Servers) && bytes.Equal(c.UserData, o.UserData) && bytes.Equal(c.Route, o.Route)
}

// TestGolden makes each vector from its keys, claims and nonce, and reads it back.
func TestGolden(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			key := newKey([32]byte(v.PrivateKey), [32]byte(v.TokenKey))
			if public := key.Public(); !bytes.Equal(public[:], v.PublicKey) || key.Private() != [32]byte(v.PrivateKey) {
				t.Errorf("public key %x", public)
			}
			if id := key.ID(); !bytes.Equal(id[:], v.KeyID) || key.Issuer().ID() != id {
				t.Errorf("key id %v and %v", id, key.Issuer().ID())
			}
			if key.Secret() != v.KeyText || key.Issuer().Secret() != v.IssuerKeyText {
				t.Errorf("keys are written as\n%s\n%s", key.Secret(), key.Issuer().Secret())
			}
			if parsed, err := ParseKey(v.KeyText); err != nil || !parsed.Equal(key) {
				t.Errorf("ParseKey: %v, %v", parsed, err)
			}
			issuer, err := ParseIssuerKey(v.IssuerKeyText)
			if err != nil || !issuer.Equal(key.Issuer()) {
				t.Fatalf("ParseIssuerKey: %v, %v", issuer, err)
			}

			claims := v.claims()
			if plain := claims.append(nil); !bytes.Equal(plain, v.Claims) {
				t.Errorf("claims\n%x, want\n%x", plain, v.Claims)
			}
			made, err := issue(issuer, claims, (*[nonceLen]byte)(v.Nonce))
			if err != nil || made.String() != v.Token {
				t.Fatalf("token\n%s, want\n%s; %v", made, v.Token, err)
			}
			token, err := Parse(v.Token)
			if err != nil || token != made {
				t.Fatalf("Parse: %v", err)
			}
			if !bytes.Equal(token.Sealed(), v.Sealed) || token.ServerKey() != key.Public() || token.KeyID() != key.ID() || !bytes.Equal(token.Route(), v.Route) || !token.Expires().Equal(claims.Expires) {
				t.Errorf("read: server %x, expires %v, sealed %x", token.ServerKey(), token.Expires(), token.Sealed())
			}
			opened, id, err := key.Open(v.Sealed)
			if err != nil || !opened.equal(&claims) || !bytes.Equal(id[:], v.ID) || token.ID() != id {
				t.Errorf("opened: %+v, id %v, %v", opened, id, err)
			}
			if opened.Issued.Location() != time.UTC || opened.Expires.Location() != time.UTC || token.Expires().Location() != time.UTC {
				t.Error("not all times are in UTC")
			}
		})
	}
}

// TestBounds holds the development key and the documented sizes against vectors.
func TestBounds(t *testing.T) {
	sizes := map[string][3]int{}
	for _, v := range vectors(t) {
		sizes[v.Name] = [3]int{len(v.Claims), len(v.Sealed), len(v.Token)}
		if k := Development(); v.Name == "development" && (k.Secret() != v.KeyText || k.String() != "token.Key(development)") {
			t.Errorf("%v: %s", k, k.Secret())
		}
	}
	if sizes["smallest"] != [3]int{minClaims, minSealed, 178} || sizes["largest"] != [3]int{maxClaims, MaxSealed, 734} {
		t.Errorf("%v", sizes)
	}
}
