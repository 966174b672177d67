package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestDemoUntilInterrupted plays until Ctrl-C, and reads the metrics while it plays.
func TestDemoUntilInterrupted(t *testing.T) {
	p := start(t, "demo", "--rtt", "10ms", "--loss", "2%", "--clients", "4")
	url := p.await(&p.stdout, `Metrics: (\S+)\n`)[1]
	text := get(t, url)
	for _, want := range []string{"\nuplink_ds_players 4\n", `uplink_client_frames_total{channel="unreliable",kind="delta",rpc="RocketMove"}`, "\ngo_goroutines "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p.interrupt()
	if code := p.wait(); code != 0 || p.stderr.String() != "" {
		t.Errorf("code %d: %s", code, p.stderr.String())
	}
	if summary := p.stdout.String(); !strings.Contains(summary, "\nDifferent from what was recorded: 0.\n") {
		t.Errorf("no summary in\n%s", summary)
	}
}

// TestDemoFor plays for a time that was set.
func TestDemoFor(t *testing.T) {
	code, stdout, stderr := uplink(t, "demo", "--rtt", "10ms", "--jitter", "1ms", "--loss", "0.1", "--burst", "2", "--for", "300ms", "--suite", "compact")
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for _, want := range []string{
		"Link: RTT 10ms, jitter 1ms, loss 10 % in bursts of 2; codec adaptive; preset balanced; suite aes128ctr-hmac8.\n",
		"RPC         calls/s  ",
		"\nPortalMove  ", "\nRocketMove  ", "\nall         ",
		"\nDifferent from what was recorded: 0.\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("escape sequences though this is no terminal:\n%q", stdout)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	return do(t, request)
}

// status is how a server answers.
func status(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url)
	must(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	must(t, response.Body.Close())
	return response.StatusCode
}

func do(t *testing.T, request *http.Request) string {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v", request.URL, response.Status, err)
	}
	return string(body)
}
