//go:build unix

package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/backend"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// read returns what an HTTP server answers.
func read(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	return string(text)
}

// TestRotation rotates the keys of a backend and of a server of its fleet, programs of their own,
// as docs/fleet.md describes it. Players can join all the time.
func TestRotation(t *testing.T) {
	source := slice(t, sample.Portal2(), 30, nil)
	older, old, last := keygen(t), keygen(t), keygen(t)
	service, hangUp := startCommand(t, "backend", "--listen", "127.0.0.1:0", "--key", older+issuerSuffix, "--key", old+issuerSuffix)
	url := service.await(&service.stderr, `msg=backend url=(\S+) `)[1]
	server, addr, send := startServer(t, "--fleet", url+"fleet/", "--fleet-name", "eu-1", "--label", "map=dust", "--label", "fleet=eu",
		"--metrics", "127.0.0.1:0", "--schema", trace.SchemaPath(source.Name), "--key", old, "--key", older)
	ids := map[string]string{} // of issuer keys
	for _, path := range []string{older, old, last} {
		k, err := loadIssuerKey(path+issuerSuffix, slog.New(slog.DiscardHandler))
		must(t, err)
		ids[path] = k.ID().String()
	}
	replace := func(path, by string) {
		t.Helper()
		text, err := os.ReadFile(by)
		must(t, err)
		must(t, os.WriteFile(path, text, 0o600))
	}
	// issued waits until the backend issues tokens of a key.
	issued := func(key string) {
		t.Helper()
		var text string
		uplinktest.Await(t, "a token of the key "+ids[key], func() bool {
			var a backend.Answer
			text = read(t, http.MethodPost, url+"token", `{"client": "42", "labels": {"map": "dust"}}`)
			return json.Unmarshal([]byte(text), &a) == nil && a.Token.KeyID().String() == ids[key] && a.Server.String() == addr && a.Name == "eu-1"
		}, func() any { return text })
	}
	play := func(key string) {
		t.Helper()
		if code, stdout, stderr := uplink(t, "replay", "--to", addr, "--key", key+issuerSuffix, source.Name); code != 0 {
			t.Errorf("code %d: %s%s", code, stdout, stderr)
		}
	}
	issued(old)
	play(old)

	replace(older+issuerSuffix, last+issuerSuffix)
	hangUp(syscall.SIGHUP)
	service.await(&service.stderr, `msg="keys reloaded" keys="`+ids[last]+" "+ids[old]+`"`)
	if page := read(t, http.MethodGet, url, ""); !strings.Contains(page, ids[last]+", "+ids[old]) {
		t.Errorf("the page lacks the keys: %s", page)
	}
	issued(old)
	replace(older, old) // the second file
	replace(old, last)
	send(syscall.SIGHUP)
	server.await(&server.stderr, `msg="keys reloaded"`)
	issued(last)
	play(last)
	if code, stdout, stderr := uplink(t, "replay", "--to", addr, "--key", old+issuerSuffix, source.Name); code != 0 {
		t.Errorf("a token of the old key: code %d: %s%s", code, stdout, stderr)
	}
	must(t, os.WriteFile(older+issuerSuffix, []byte("no key\n"), 0o600))
	hangUp(syscall.SIGHUP)
	service.await(&service.stderr, `msg="keys not reloaded" error=`)
	issued(last)

	metrics := server.await(&server.stderr, `msg=metrics url=(\S+)\n`)[1]
	text := read(t, http.MethodGet, metrics, "")
	if !regexp.MustCompile(`\nuplink_ds_build_info\{fleet="eu",.*map="dust".*version="[^"]+".*\} 1\n`).MatchString(text) {
		t.Error("no build information with the labels")
	}
	queries, err := os.ReadFile("../../deploy/grafana/fleet.json")
	must(t, err)
	for _, name := range regexp.MustCompile(`uplink_[a-z_]+`).FindAllString(string(queries), -1) {
		if !strings.Contains(text, "\n# TYPE "+strings.TrimSuffix(name, "_bucket")+" ") {
			t.Errorf("the server exports no %s", name)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "uplink_") && !strings.Contains(line, `fleet="eu"`) {
			t.Errorf("no label of the fleet: %s", line)
		}
	}
	send(syscall.SIGTERM)
	<-server.done
	hangUp(syscall.SIGTERM)
	<-service.done
}

// TestBotsOfBackend plays with bots that get their servers from a backend while one of two servers
// drains: they are handed over, and none reconnects.
func TestBotsOfBackend(t *testing.T) {
	source := slice(t, sample.Portal2(), 30, nil)
	service, endBackend := startCommand(t, "backend", "--listen", "127.0.0.1:0")
	url := service.await(&service.stderr, `msg=backend url=(\S+) `)[1]
	args := []string{"--fleet", url + "fleet/", "--schema", trace.SchemaPath(source.Name), "--fleet-name"}
	first, _, endFirst := startServer(t, append(args, "eu-1")...)
	second, _, endSecond := startServer(t, append(args, "eu-2")...)
	uplinktest.Await(t, "both servers in the directory", func() bool {
		return strings.Count(read(t, http.MethodGet, url+"servers", ""), `"name"`) == 2
	}, nil)
	bots := start(t, "bots", "--backend", url, "--players", "8", "--rate", "20", "--ramp", "100ms", "--json", source.Name)
	uplinktest.Await(t, "all bots play", func() bool {
		return strings.Count(first.stderr.String()+second.stderr.String(), "msg=\"rpc bound\"") >= 8
	}, nil)
	moved := strings.Count(first.stderr.String(), "msg=\"rpc bound\"")
	endFirst(syscall.SIGTERM)
	<-first.done
	uplinktest.Await(t, "they play on the other server", func() bool { return strings.Count(second.stderr.String(), "msg=\"rpc bound\"") >= 8 }, nil)
	bots.interrupt()
	<-bots.done
	var report load.Report
	must(t, json.Unmarshal([]byte(bots.stdout.String()), &report))
	if p := report.Players; p.Handovers != uint64(moved) || p.Reconnections != 0 || p.Connected != 8 {
		t.Errorf("%d players were handed over: %+v", moved, p)
	}
	for _, c := range []struct{ args, want string }{
		{"--backend " + url + " --to 127.0.0.1:1", "--to: --backend chooses servers"},
		{"--backend ftp://127.0.0.1/", "--backend \"ftp://127.0.0.1/\": want a URL"},
		{"--game-secret secret", "--game-secret: it needs --backend"},
	} {
		if code, _, stderr := uplink(t, append(strings.Fields("bots "+c.args), source.Name)...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, %s", c.args, code, stderr)
		}
	}
	endSecond(syscall.SIGTERM)
	<-second.done
	endBackend(syscall.SIGTERM)
	<-service.done
	http.DefaultClient.CloseIdleConnections()
}
