package token

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// texts are the three parsers, each giving what it read as text again.
var texts = []struct {
	form  *textForm
	parse func(string) (string, error)
}{
	{&keyText, func(s string) (string, error) { k, err := ParseKey(s); return k.Secret(), err }},
	{&issuerKeyText, func(s string) (string, error) { k, err := ParseIssuerKey(s); return k.Secret(), err }},
	{&tokenText, func(s string) (string, error) { t, err := Parse(s); return t.String(), err }},
}

// testTexts returns a valid text of each type, in the order of texts.
func testTexts(t testing.TB) []string {
	return []string{testKey.Secret(), testKey.Issuer().Secret(), mustIssue(t, testKey.Issuer(), valid()).String()}
}

func TestTextErrors(t *testing.T) {
	const words = "want "
	for i, good := range testTexts(t) {
		form, parse := texts[i].form, texts[i].parse
		coded := strings.TrimPrefix(good, form.prefix)
		other := testTexts(t)[(i+1)%3]
		for _, test := range []struct{ name, text, want string }{
			{"good", good, ""},
			{"white space around", " \r\n" + good + "\n", ""},
			{"empty", "", words + form.what + ", which begins with " + form.prefix + "; this is empty"},
			{"white space alone", " \n", "this is empty"},
			{"something else", "hunter2", "this does not"},
			{"another text", other, "this is " + texts[(i+1)%3].form.what},
			{"a name", testKey.String(), "this is only the name of a key"},
			{"another version", strings.Replace(good, "-1.", "-2.", 1), "begins with " + form.prefix},
			{"cut off", good[:len(form.prefix)+3], "this one 3: was it cut off?"},
			{"long", good + strings.Repeat("A", 800), " characters after "},
			{"a line break", good[:40] + "\n" + good[41:], "is one line"},
			{"a space", good[:40] + " " + good[41:], "is base64url without padding: illegal base64 data at input byte "},
			{"plain base64", form.prefix + "+" + coded[1:], "at input byte 0"},
		} {
			again, err := parse(test.text)
			if test.want == "" {
				if err != nil || again != good {
					t.Errorf("%s %s: %s, %v", form.what, test.name, again, err)
				}
				continue
			}
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), test.want) || again != "" {
				t.Errorf("%s, %s: %v, want %q", form.what, test.name, err, test.want)
			}
			if err != nil && len(test.text) > 30 && strings.Contains(err.Error(), coded[20:30]) {
				t.Errorf("%s, %s: the error repeats its text: %v", form.what, test.name, err)
			}
		}
	}
	body := make([]byte, tokenHeader+minSealed)
	body[39] = 1 // 2^56 ms
	if _, err := Parse(tokenText.encode(body)); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "a token: Expires: ") {
		t.Error(err)
	}
}

// TestOneText changes any character of a text: nothing reads it, not even where the character has
// bits to spare.
func TestOneText(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.= \n"
	for i, good := range testTexts(t) {
		for at := range good {
			for _, c := range []byte(alphabet) {
				if c == good[at] {
					continue
				}
				if _, err := texts[i].parse(good[:at] + string(c) + good[at+1:]); !errors.Is(err, ErrMalformed) {
					t.Fatalf("%q at %d of %s: %v", c, at, texts[i].form.what, err)
				}
			}
		}
	}
}

// TestUnmarshal reads a configuration; what does not parse leaves it as it was.
func TestUnmarshal(t *testing.T) {
	var config struct {
		Key    Key
		Issuer IssuerKey
		Token  Token
	}
	all := testTexts(t)
	text := check.Value(json.Marshal(map[string]string{"Key": all[0], "Issuer": all[1], "Token": all[2]}))(t)
	check.Must(t, json.Unmarshal(text, &config))
	if !config.Key.Equal(testKey) || !config.Issuer.Equal(testKey.Issuer()) || config.Token.String() != all[2] {
		t.Errorf("%+v", config)
	}
	for _, bad := range []string{`{"Key": "x"}`, `{"Issuer": ""}`, `{"Token": "` + all[0] + `"}`} {
		if err := json.Unmarshal([]byte(bad), &config); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if config.Key.IsZero() || config.Issuer.IsZero() || config.Token.IsZero() {
		t.Error("an error changed the value")
	}
	token, err := json.Marshal(config.Token)
	if err != nil || string(token) != `"`+all[2]+`"` {
		t.Errorf("%s, %v", token, err)
	}
}
