package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
)

// textForm is a text encoding: a prefix, then in base64url without padding a body and a checksum.
// The checksum is the first bytes of the SHA-256 of prefix and body. It detects truncated or
// mistyped text and authenticates nothing.
type textForm struct {
	prefix   string
	what     string // name of the encoded value, for errors
	min, max int    // size of the body in bytes
}

const sumLen = 4

var (
	keyText       = textForm{"uplink-ds-key-1.", "a server's key", 64, 64}
	issuerKeyText = textForm{"uplink-issuer-key-1.", "an issuer's key", 64, 64}
	tokenText     = textForm{"uplink-token-1.", "a token", tokenHeader + minSealed, tokenHeader + maxSealed}
)

// encoding rejects nonzero unused bits of the last character, so that each body has one text.
var encoding = base64.RawURLEncoding.Strict()

func (t *textForm) sum(body []byte) []byte {
	h := sha256.New()
	h.Write([]byte(t.prefix))
	h.Write(body)
	return h.Sum(nil)[:sumLen]
}

func (t *textForm) encode(body []byte) string {
	return t.prefix + encoding.EncodeToString(slices.Concat(body, t.sum(body)))
}

// decode returns the body of a text. Errors wrap ErrMalformed and do not contain the text.
func (t *textForm) decode(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	coded, ok := strings.CutPrefix(text, t.prefix)
	if !ok {
		return nil, malformed("want %s, which begins with %s; %s", t.what, t.prefix, begins(text))
	}
	least, most := encoding.EncodedLen(t.min+sumLen), encoding.EncodedLen(t.max+sumLen)
	switch {
	case len(coded) < least:
		return nil, malformed("%s has at least %d characters after %s, this one %d: was it cut off?", t.what, least, t.prefix, len(coded))
	case len(coded) > most:
		return nil, malformed("%s has at most %d characters after %s, this one %d", t.what, most, t.prefix, len(coded))
	}
	if strings.ContainsAny(coded, "\r\n") { // the decoder would skip them
		return nil, malformed("%s is one line, this one has several", t.what)
	}
	b, err := encoding.DecodeString(coded)
	if err != nil {
		return nil, malformed("%s is base64url without padding: %v", t.what, err)
	}
	body, sum := b[:len(b)-sumLen], b[len(b)-sumLen:]
	if subtle.ConstantTimeCompare(t.sum(body), sum) != 1 {
		return nil, malformed("the check sum of %s is wrong: it was cut off or changed", t.what)
	}
	return body, nil
}

// begins describes a text with another prefix.
func begins(text string) string {
	for _, t := range []*textForm{&keyText, &issuerKeyText, &tokenText} {
		if strings.HasPrefix(text, t.prefix) {
			return "this is " + t.what
		}
	}
	switch {
	case text == "":
		return "this is empty"
	case strings.HasPrefix(text, "token.Key(") || strings.HasPrefix(text, "token.IssuerKey("):
		return "this is only the name of a key, as it is printed; Secret gives its text"
	}
	return "this does not"
}
