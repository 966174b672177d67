package token

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// vectorFile has the keys, claims and nonces of the vectors, and everything that follows from them.
// The README beside it describes its members.
const vectorFile = "testdata/vectors/tokens.json"

// vector is one of vectorFile.
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
	Handover      hexBytes         `json:"handover"`
	Route         hexBytes         `json:"route"`
	Claims        hexBytes         `json:"claims"`
	Sealed        hexBytes         `json:"sealed"`
	Token         string           `json:"token"`
	ID            hexBytes         `json:"id"`
}

type hexBytes []byte

func (b hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(b)), nil }

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

func (v *vector) claims() Claims {
	c := Claims{
		ClientID: v.ClientID, Issued: time.UnixMilli(v.IssuedMs).UTC(), Expires: time.UnixMilli(v.ExpiresMs).UTC(),
		Servers: v.Servers, UserData: v.UserData, Route: v.Route,
	}
	copy(c.Handover[:], v.Handover)
	return c
}

// complete sets what follows from keys, claims and nonce.
func (v *vector) complete(t *testing.T) {
	t.Helper()
	key, claims := newKey([32]byte(v.PrivateKey), [32]byte(v.TokenKey)), v.claims()
	public, id := key.Public(), key.ID()
	made := check.Value(issue(key.Issuer(), claims, (*[nonceLen]byte)(v.Nonce)))(t)
	tokenID := made.ID()
	v.PublicKey, v.KeyID, v.KeyText, v.IssuerKeyText = public[:], id[:], key.Secret(), key.Issuer().Secret()
	v.Claims, v.Sealed, v.Token, v.ID = claims.append(nil), made.Sealed(), made.String(), tokenID[:]
}

func vectorsOf(t testing.TB) (all []vector) {
	t.Helper()
	b := check.Value(os.ReadFile(filepath.Join("..", vectorFile)))(t)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var file struct{ Tokens []vector }
	check.Must(t, d.Decode(&file))
	return file.Tokens
}

// TestVectors makes each vector from its keys, claims and nonce.
func TestVectors(t *testing.T) {
	all := vectorsOf(t)
	for i := range all {
		all[i].complete(t)
	}
	vectors.Check(t, vectorFile, vectors.Section{Name: "tokens", Value: all})
}

func (c *Claims) equal(o *Claims) bool {
	return c.ClientID == o.ClientID && c.Issued.Equal(o.Issued) && c.Expires.Equal(o.Expires) &&
		slices.Equal(c.Servers, o.Servers) && c.Handover == o.Handover && bytes.Equal(c.UserData, o.UserData) && bytes.Equal(c.Route, o.Route)
}

// TestGolden reads each vector back.
func TestGolden(t *testing.T) {
	for _, v := range vectorsOf(t) {
		t.Run(v.Name, func(t *testing.T) {
			key := newKey([32]byte(v.PrivateKey), [32]byte(v.TokenKey))
			if parsed, err := ParseKey(v.KeyText); err != nil || !parsed.Equal(key) {
				t.Errorf("ParseKey: %v, %v", parsed, err)
			}
			if issuer, err := ParseIssuerKey(v.IssuerKeyText); err != nil || !issuer.Equal(key.Issuer()) {
				t.Errorf("ParseIssuerKey: %v, %v", issuer, err)
			}

			claims := v.claims()
			token, err := Parse(v.Token)
			if err != nil || token.String() != v.Token {
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
	for _, v := range vectorsOf(t) {
		sizes[v.Name] = [3]int{len(v.Claims), len(v.Sealed), len(v.Token)}
		if k := Development(); v.Name == "development" && (k.Secret() != v.KeyText || k.String() != "token.Key(development)") {
			t.Errorf("%v: %s", k, k.Secret())
		}
	}
	if sizes["smallest"] != [3]int{minClaims, minSealed, 179} || sizes["largest"] != [3]int{maxClaims, maxSealed, 778} {
		t.Errorf("%v", sizes)
	}
}
