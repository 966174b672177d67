package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/token"
)

// TestServe serves the state of a fleet to two servers: one program's use of a token is known to
// the other one.
func TestServe(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "fleet.secret")
	if err := os.WriteFile(secret, []byte("a secret of servers\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := begin(t, new(server.Options))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var urls [2]string
	for i := range urls {
		listening := make(chan string, 1)
		go func() {
			ended <- run(ctx, &options{listen: "127.0.0.1:0", nats: login{urls: url}, replicas: 1, secret: secret}, quiet, func(url string) { listening <- url })
		}()
		select {
		case urls[i] = <-listening:
		case err := <-ended:
			t.Fatal(err)
		}
	}
	first, second := httpstore.New(urls[0], "a secret of servers", nil), httpstore.New(urls[1], "a secret of servers", nil)
	u := fleet.Use{Token: token.ID{1}, Expires: time.Now().Add(time.Minute), Attempt: [32]byte{1}}
	for _, url := range urls {
		await(t, url+"readyz", "ok\n")
	}
	if err := first.Use(t.Context(), u); err != nil {
		t.Error(err)
	}
	u.Attempt[0]++
	if err := second.Use(t.Context(), u); !errors.Is(err, token.ErrUsed) {
		t.Errorf("the token a second time: %v", err)
	}
	if err := httpstore.New(urls[0], "another secret", nil).Use(t.Context(), u); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with another secret: %v", err)
	}
	await(t, urls[0]+"healthz", "ok\n")
	await(t, urls[0]+"metrics", `uplink_store_calls_total{call="use",result="ok"} 1`)
	http.DefaultClient.CloseIdleConnections()
	cancel()
	for range urls {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// get returns the status and the text of an answer.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(text)
}

// await waits until an answer contains a text, for a minute at most.
func await(t *testing.T, url, want string) {
	t.Helper()
	var text string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, text = get(t, url); strings.Contains(text, want) {
			return
		}
	}
	t.Errorf("%s answers %s, want %q", url, text, want)
}

// TestWithoutNATS starts the program before NATS: it answers, says why it is not ready, without the
// password, and is ready when NATS is.
func TestWithoutNATS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		o := options{listen: "127.0.0.1:0", nats: login{urls: "nats://fleet:s3cr3t@" + at}, replicas: 1}
		ended <- run(ctx, &o, slog.New(slog.NewTextHandler(&log, nil)), func(url string) { listening <- url })
	}()
	url := <-listening
	await(t, url+"readyz", "no connection to NATS: dial tcp "+at)
	if code, _ := get(t, url+"readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("not ready: status %d", code)
	}
	await(t, url+"metrics", "\nuplink_store_up 0\n")
	if _, err := httpstore.New(url, "", nil).Servers(t.Context()); err == nil || !strings.Contains(err.Error(), "no connection to NATS") {
		t.Errorf("a call: %v", err)
	}
	addr := netip.MustParseAddrPort(at)
	begin(t, &server.Options{Port: int(addr.Port()), Username: "fleet", Password: "s3cr3t"})
	await(t, url+"readyz", "ok\n")
	await(t, url+"metrics", "\nuplink_store_up 1\n")
	await(t, url+"metrics", "\nuplink_nats_buckets_created_total 4\n")
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Contains(text, "s3cr3t") || strings.Count(text, "store fails") < 1 || strings.Count(text, "store works") != 1 {
		t.Errorf("the log: %s", text)
	}
}

// TestMistakes starts the program with wrong options.
func TestMistakes(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := begin(t, new(server.Options))
	for want, o := range map[string]options{
		"want 16 characters or more": {listen: "127.0.0.1:0", nats: login{urls: url}, replicas: 1, secret: empty},
		"no such file":               {listen: "127.0.0.1:0", nats: login{urls: url}, replicas: 1, secret: empty + "2"},
		"set -secret":                {listen: "0.0.0.0:0", nats: login{urls: url}, replicas: 1},
		"want 1 to 5":                {listen: "127.0.0.1:0", nats: login{urls: url}},
		"missing port":               {listen: "127.0.0.1", nats: login{urls: url}, replicas: 1},
	} {
		if err := run(t.Context(), &o, quiet, func(string) { t.Errorf("%s: it serves", want) }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
