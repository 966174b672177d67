package main

import (
	"context"
	"errors"
	"io"
	"net/http"
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

// startNATS starts a NATS server until the test ends, and returns its URL.
func startNATS(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

// TestServe serves the state of a fleet to two servers: one program's use of a token is known to
// the other one.
func TestServe(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "fleet.secret")
	if err := os.WriteFile(secret, []byte("a secret of servers\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := startNATS(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var urls [2]string
	for i := range urls {
		listening := make(chan string, 1)
		go func() {
			ended <- run(ctx, &options{listen: "127.0.0.1:0", nats: login{urls: url}, replicas: 1, secret: secret}, func(url string) { listening <- url })
		}()
		select {
		case urls[i] = <-listening:
		case err := <-ended:
			t.Fatal(err)
		}
	}
	first, second := httpstore.New(urls[0], "a secret of servers", nil), httpstore.New(urls[1], "a secret of servers", nil)
	u := fleet.Use{Token: token.ID{1}, Expires: time.Now().Add(time.Minute), Attempt: [32]byte{1}}
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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, urls[0]+"healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || string(text) != "ok\n" {
		t.Errorf("health: %d, %q, %v", res.StatusCode, text, err)
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	cancel()
	for range urls {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestMistakes starts the program with wrong options.
func TestMistakes(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := startNATS(t)
	for want, o := range map[string]options{
		"want 16 characters or more": {listen: "127.0.0.1:0", nats: login{urls: url}, replicas: 1, secret: empty},
		"no such file":               {listen: "127.0.0.1:0", nats: login{urls: url}, replicas: 1, secret: empty + "2"},
		"set -secret":                {listen: "0.0.0.0:0", nats: login{urls: url}, replicas: 1},
		"want 1 to 5":                {listen: "127.0.0.1:0", nats: login{urls: url}},
		"missing port":               {listen: "127.0.0.1", nats: login{urls: url}, replicas: 1},
	} {
		if err := run(t.Context(), &o, func(string) { t.Errorf("%s: it serves", want) }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
