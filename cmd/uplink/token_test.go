package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/token"
)

// keygen creates keys in a temporary directory and returns the path of the server's key.
func keygen(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds.key")
	if code, _, stderr := uplink(t, "keygen", "-o", path); code != 0 {
		t.Fatal(stderr)
	}
	return path
}

func TestKeygen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ds.key")
	code, stdout, stderr := uplink(t, "keygen", "-o", path)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	key, err := loadKey(path, slog.New(slog.DiscardHandler), token.ParseKey)
	must(t, err)
	issuer, err := loadKey(path+".issuer", slog.New(slog.DiscardHandler), token.ParseIssuerKey)
	must(t, err)
	if !key.Issuer().Equal(issuer) || key.Equal(token.Development()) {
		t.Errorf("the keys are %v and %v", key, issuer)
	}
	if want := fmt.Sprintf("server key  %s\nissuer key  %s.issuer\nkey id      %v\npublic key  %s\n", path, path, key.ID(), keyText(key.Public())); stdout != want {
		t.Errorf("got\n%swant\n%s", stdout, want)
	}
	for _, p := range []string{path, path + ".issuer"} {
		info, err := os.Stat(p)
		must(t, err)
		if runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("%s: %v", p, info.Mode())
		}
	}
}

func TestKeygenJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ds.key")
	got := parse[keyFiles](t, "keygen", "-o", path, "--json")
	key, err := loadKey(got.Key, slog.New(slog.DiscardHandler), token.ParseKey)
	must(t, err)
	if want := (keyFiles{path, path + ".issuer", key.ID().String(), keyText(key.Public())}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestKeygenKeeps: no file is overwritten, and no key is left without the other.
func TestKeygenKeeps(t *testing.T) {
	for _, there := range []string{"ds.key", "ds.key.issuer"} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, there), []byte("old"), 0o600))
		code, stdout, stderr := uplink(t, "keygen", "-o", filepath.Join(dir, "ds.key"))
		if code != 1 || stdout != "" || !strings.Contains(stderr, there+": file exists\nhint: keys are not overwritten; ") {
			t.Errorf("code %d: %s%s", code, stdout, stderr)
		}
		entries, err := os.ReadDir(dir)
		must(t, err)
		old, err := os.ReadFile(filepath.Join(dir, there))
		must(t, err)
		if len(entries) != 1 || string(old) != "old" {
			t.Errorf("%d files, %s has %q", len(entries), there, old)
		}
	}
}

func TestToken(t *testing.T) {
	path := keygen(t)
	key, err := loadKey(path, slog.New(slog.DiscardHandler), token.ParseKey)
	must(t, err)
	data := filepath.Join(t.TempDir(), "data.bin")
	must(t, os.WriteFile(data, []byte{0, 1, 0xff}, 0o600))
	const server = "203.0.113.7:7777"
	for _, c := range []struct {
		name     string
		args     []string
		lifetime time.Duration
		servers  string
		userData string
		shown    string // the end of --show's text
	}{
		{"default", nil, time.Minute, server, "", "server      203.0.113.7:7777\nuser data   none\n"},
		{"text", []string{"--for", "2m30s", "--user-data", "team=blue"}, 150 * time.Second, server, "team=blue", "user data   \"team=blue\"\n"},
		{"file", []string{"--user-data", "@" + data, "--server", "[2001:db8::7]:1"}, time.Minute, server + " [2001:db8::7]:1", "\x00\x01\xff", "server      [2001:db8::7]:1\nuser data   3 bytes, in hex 0001ff\n"},
		{"route", []string{"--route", "eu-1"}, time.Minute, server, "", "user data   none\n"},
		{"control characters", []string{"--user-data", "a\x1b[2J"}, time.Minute, server, "a\x1b[2J", "user data   5 bytes, in hex 611b5b324a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"token", "--key", path + ".issuer", "--client", "76561197960287930", "--server", server}, c.args...)
			before := time.Now().Truncate(time.Millisecond)
			code, stdout, stderr := uplink(t, args...)
			if code != 0 || stderr != "" {
				t.Fatalf("code %d: %s", code, stderr)
			}
			text := strings.TrimSuffix(stdout, "\n")
			tok, err := token.Parse(text)
			must(t, err)
			claims, id, err := key.Open(tok.Sealed())
			must(t, err)
			if claims.ClientID != 76561197960287930 || claims.Expires.Sub(claims.Issued) != c.lifetime || claims.Issued.Before(before) ||
				fmt.Sprint(claims.Servers) != "["+c.servers+"]" || string(claims.UserData) != c.userData {
				t.Errorf("claims %+v", claims)
			}
			if c.name == "route" && (string(claims.Route) != "eu-1" || string(tok.Route()) != "eu-1") {
				t.Errorf("route %q", claims.Route)
			}

			code, stdout, stderr = uplink(t, "token", "--show", text, "--key", path)
			start := fmt.Sprintf("id          %v\nkey id      %v\nserver key  %s\nexpires     %s, in ", id, key.ID(), keyText(key.Public()), timeText(claims.Expires))
			middle := fmt.Sprintf("\nclient      76561197960287930\nissued      %s, lifetime %v\n", timeText(claims.Issued), c.lifetime)
			if code != 0 || stderr != "" || !strings.HasPrefix(stdout, start) || !strings.Contains(stdout, middle) || !strings.HasSuffix(stdout, c.shown) {
				t.Errorf("code %d, got\n%s%swant\n%s...%s...\n%s", code, stdout, stderr, start, middle, c.shown)
			}

			if strings.Contains(stdout, "\nroute       \"eu-1\"\n") != (c.name == "route") {
				t.Errorf("got\n%s", stdout)
			}

			code, stdout, stderr = uplink(t, "token", "--show", text)
			if want := fmt.Sprintf("\nencrypted   %d bytes; --key with the server key decrypts them\n", len(tok.Sealed())); code != 0 || stderr != "" || !strings.HasPrefix(stdout, start) || !strings.HasSuffix(stdout, want) {
				t.Errorf("code %d, got\n%s%swant\n%s...%s", code, stdout, stderr, start, want)
			}
		})
	}
}

func TestTokenJSON(t *testing.T) {
	path := keygen(t)
	type issued struct {
		Token   token.Token
		ID      string
		Expires time.Time
	}
	made := parse[issued](t, "token", "--key", path+".issuer", "--client", "18446744073709551615",
		"--server", "[::1]:7777", "--user-data", "hi", "--json")
	if made.ID != made.Token.ID().String() || !made.Expires.Equal(made.Token.Expires()) {
		t.Fatalf("%+v", made)
	}
	_, stdout, _ := uplink(t, "token", "--show", made.Token.String(), "--key", path, "--json")
	var shown shownToken
	must(t, json.Unmarshal([]byte(stdout), &shown))
	c := shown.Claims
	if shown.ID != made.ID || !shown.Expires.Equal(made.Expires) || shown.Expired || c == nil || c.ClientID != 1<<64-1 || string(c.UserData) != "hi" || !slices.Equal(c.Servers, []netip.AddrPort{netip.MustParseAddrPort("[::1]:7777")}) {
		t.Errorf("%+v, %+v", shown, c)
	}
	if !strings.Contains(stdout, `"client_id": "18446744073709551615"`) {
		t.Errorf("a client id that JavaScript would round: %s", stdout)
	}
	_, stdout, _ = uplink(t, "token", "--show", made.Token.String(), "--json")
	if strings.Contains(stdout, "claims") || !strings.Contains(stdout, `"aead_bytes": `) {
		t.Error(stdout)
	}
}

// TestTokenExpired shows a token in the milliseconds before and at its expiry.
func TestTokenExpired(t *testing.T) {
	expires := time.UnixMilli(1_789_000_000_123)
	tok, err := token.Issue(token.Development().Issuer(), token.Claims{
		Issued: expires.Add(-time.Hour), Expires: expires, Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")},
	})
	must(t, err)
	o := tokenOptions{show: tok.String()}
	for _, c := range []struct {
		now     time.Time
		expired bool
		want    string
	}{
		{expires.Add(-90 * time.Second), false, "expires     2026-09-10T00:26:40.123Z, in 1m30s\n"},
		{expires.Add(-1), false, "Z, in 0s\n"},
		{expires, true, "Z, expired 0s ago\n"},
		{expires.Add(3 * time.Minute), true, "Z, expired 3m0s ago\n"},
	} {
		var text, coded strings.Builder
		o.json = false
		must(t, o.runShow(&text, slog.New(slog.DiscardHandler), c.now))
		o.json = true
		must(t, o.runShow(&coded, slog.New(slog.DiscardHandler), c.now))
		if !strings.Contains(text.String(), c.want) || !strings.Contains(coded.String(), fmt.Sprintf(`"expired": %v`, c.expired)) {
			t.Errorf("%v: %s%s", c.now, &text, &coded)
		}
	}
}

// damage invalidates a token's AEAD tag and recomputes its checksum.
func damage(t *testing.T, text string) string {
	t.Helper()
	prefix, coded, _ := strings.Cut(text, ".")
	body, err := base64.RawURLEncoding.DecodeString(coded)
	must(t, err)
	body = body[:len(body)-4]
	body[len(body)-1] ^= 1
	sum := sha256.Sum256(append([]byte(prefix+"."), body...))
	return prefix + "." + base64.RawURLEncoding.EncodeToString(append(body, sum[:4]...))
}

// TestKeyedServer plays with keys and a token, which admits nobody twice.
func TestKeyedServer(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 40, nil)
	key := keygen(t)
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--key", key, "--suite", "compact")
	code, text, stderr := uplink(t, "token", "--key", key+issuerSuffix, "--client", "42", "--server", addr)
	if code != 0 {
		t.Fatal(stderr)
	}
	file := filepath.Join(t.TempDir(), "token.txt")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	play := func(args ...string) (int, string) {
		code, stdout, stderr := uplink(t, append([]string{"replay", "--to", addr, "--suite", "compact", source.Name}, args...)...)
		return code, stdout + stderr
	}
	if code, said := play("--token", "@"+file); code != 0 || !strings.HasPrefix(said, "40 frames sent: ") {
		t.Fatalf("code %d: %s", code, said)
	}
	server.await(&server.stderr, `msg="player connected" player=\d+ client=42 `)
	for args, want := range map[string]string{
		"--token " + strings.TrimSpace(text): "has been used, get a new one for each connection\nhint: a token starts one session: issue another one, or use --key\n",
		"--wait 1s":                          "no connect token: get one",
	} {
		if code, said := play(strings.Fields(args)...); code != 1 || !strings.Contains(said, want) {
			t.Errorf("%s: code %d, no %q in %s", args, code, want, said)
		}
	}
	if code, said := play("--key", key+issuerSuffix); code != 0 || !strings.HasPrefix(said, "40 frames sent: ") {
		t.Errorf("code %d: %s", code, said)
	}
}

// TestAddr checks a server whose public address differs from its listen address.
func TestAddr(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 5, nil)
	key := keygen(t)
	_, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--key", key, "--addr", "203.0.113.7:7777")
	for server, want := range map[string]string{
		"203.0.113.7:7777": "5 frames sent: ",
		"203.0.113.8:7777": "\nhint: the token must name an address of the server's --addr, by default the one on which it listens\n",
	} {
		_, text, _ := uplink(t, "token", "--key", key+issuerSuffix, "--client", "1", "--server", server)
		if _, stdout, stderr := uplink(t, "replay", "--to", addr, "--token", strings.TrimSpace(text), source.Name); !strings.Contains(stdout+stderr, want) {
			t.Errorf("%s: no %q in %s%s", server, want, stdout, stderr)
		}
	}
}

// TestRenew restarts a server, which takes no token that was issued before.
func TestRenew(t *testing.T) {
	source := slice(t, sample.RocketLeague(), 20, nil)
	key := keygen(t)
	server, addr := startDS(t, "--schema", trace.SchemaPath(source.Name), "--key", key)
	client := start(t, "replay", "--to", addr, "--key", key+issuerSuffix, "--loop", source.Name)
	who := server.await(&server.stderr, `msg="player connected" player=\d+ (client=\d+) `)[1]
	server.await(&server.stderr, `msg="rpc bound" `) // so it has joined at the client's end, too
	server.interrupt()
	server.wait()
	again := start(t, "ds", "--listen", addr, "--schema", trace.SchemaPath(source.Name), "--key", key)
	again.await(&again.stderr, `msg="player connected" player=\d+ `+who+` `)
	client.interrupt()
	if code := client.wait(); code != 0 {
		t.Errorf("code %d: %s", code, client.stderr.String())
	}
}

// TestHandoverToken shows a token of a server that hands a player over.
func TestHandoverToken(t *testing.T) {
	path := keygen(t)
	key, err := loadKey(path+".issuer", slog.New(slog.DiscardHandler), token.ParseIssuerKey)
	must(t, err)
	claims := token.Claims{ClientID: 1, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{netip.MustParseAddrPort("[::1]:7777")}}
	claims.Handover[0], claims.Handover[31] = 0xab, 1
	handed, err := token.Issue(key, claims)
	must(t, err)
	_, stdout, _ := uplink(t, "token", "--show", handed.String(), "--key", path)
	if want := "\nhandover    SHA-256 ab" + strings.Repeat("00", 30) + "01\n"; !strings.HasSuffix(stdout, want) {
		t.Errorf("got\n%swant ...%s", stdout, want)
	}
}
