package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// leaks reports whether a text contains four consecutive bytes of a secret, in any format in which
// Go prints bytes.
func leaks(text string, secret [32]byte) bool {
	for i := 0; i+4 <= len(secret); i++ {
		b := secret[i : i+4]
		for _, form := range []string{
			string(b), fmt.Sprintf("%x", b), fmt.Sprintf("%X", b), fmt.Sprintf("% x", b), fmt.Sprintf("%q", b), fmt.Sprintf("%U", b),
			fmt.Sprintf("%d", b), fmt.Sprintf("%o", b), fmt.Sprintf("%b", b), fmt.Sprintf("%c", b),
			strings.TrimPrefix(fmt.Sprintf("%#v", b), "[]byte{"), strings.ReplaceAll(fmt.Sprintf("%d", b), " ", ","),
		} {
			if strings.Contains(text, strings.Trim(form, "[]{}\"")) {
				return true
			}
		}
	}
	for i := 0; i+6 <= len(secret); i++ { // whatever the phase, two whole groups of four characters
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if strings.Contains(text, e.EncodeToString(secret[i:i+6])) {
				return true
			}
		}
	}
	return false
}

type exported struct {
	Key    Key
	Issuer IssuerKey
	Ptr    *Key
}

type unexported struct {
	key    Key
	issuer IssuerKey
}

type embedding struct{ Key }

// TestRedacted prints keys in every way that somebody may print a configuration: no secret shows.
func TestRedacted(t *testing.T) {
	private, shared := sha256.Sum256([]byte("private")), sha256.Sum256([]byte("shared"))
	k := newKey(private, shared)
	holders := map[string]any{
		"key": k, "pointer": &k, "issuer": k.Issuer(),
		"struct": exported{k, k.Issuer(), &k}, "pointer to struct": &exported{k, k.Issuer(), &k},
		"unexported": unexported{k, k.Issuer()}, "pointer to unexported": &unexported{k, k.Issuer()},
		"embedding": embedding{k}, "slice": []Key{k}, "issuers": []IssuerKey{k.Issuer()}, "map": map[string]any{"key": k, "issuer": k.Issuer()},
		"error": fmt.Errorf("config %v %v", k, k.Issuer()), "group": slog.GroupValue(slog.Any("key", k), slog.Any("issuer", k.Issuer())),
	}
	check := func(what, text string) {
		t.Helper()
		if text == "" || leaks(text, private) || leaks(text, shared) {
			t.Errorf("%s: %q", what, text)
		}
	}
	for name, v := range holders {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%b", "%o", "%c", "%U", "%t", "%e", "%p", "%T"} {
			check(name+", "+verb, fmt.Sprintf(verb, v))
		}
		check(name+", Sprint", fmt.Sprint(v))
		text, err := json.Marshal(v)
		check(name+", json", fmt.Sprintf("%s %v", text, err))
		text, err = xml.Marshal(v)
		check(name+", xml", fmt.Sprintf("%s %v", text, err))
		var b bytes.Buffer
		err = gob.NewEncoder(&b).Encode(v)
		check(name+", gob", fmt.Sprintf("%s %v", b.Bytes(), err))
		for _, h := range []func(*bytes.Buffer) slog.Handler{
			func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			b.Reset()
			slog.New(h(&b)).With("with", v).WithGroup("group").Info("message", "holder", v)
			check(name+", slog", b.String())
		}
	}
	if got, want := k.String(), "token.Key("+base64.RawURLEncoding.EncodeToString(k.secrets().public[:6])+"...)"; got != want || k.GoString() != want {
		t.Errorf("a key is named %s, want %s", got, want)
	}
	// Names are no keys.
	text, err := k.MarshalText()
	if err != nil || k.UnmarshalText(text) == nil {
		t.Errorf("%s is read as a key, %v", text, err)
	}
	issuer := k.Issuer()
	if text, err = issuer.MarshalText(); err != nil || !errors.Is(issuer.UnmarshalText(text), ErrMalformed) {
		t.Errorf("%s is read as a key, %v", text, err)
	}
}

// TestTokenInLogs shows that a log has a token's name and not the token.
func TestTokenInLogs(t *testing.T) {
	token := mustIssue(t, testKey.Issuer(), valid())
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("issued", "token", token)
	line := b.String()
	if !strings.Contains(line, "token.id="+token.ID().String()+" token.expires=2026-") || strings.Contains(line, tokenText.prefix) {
		t.Error(line)
	}
}
