package webserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestMetrics(t *testing.T) {
	apples := prometheus.NewCounter(prometheus.CounterOpts{Name: "apples_total", Help: "Apples."})
	apples.Add(3)
	s, err := Start("127.0.0.1:0", apples)
	if err != nil {
		t.Fatal(err)
	}
	code, body := get(t, s.URL())
	for _, want := range []string{"\napples_total 3\n", "\ngo_goroutines "} {
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("code %d, no %q in\n%s", code, want, body)
		}
	}
	if code, _ := get(t, strings.TrimSuffix(s.URL(), "metrics")); code != http.StatusNotFound {
		t.Errorf("code %d for another page", code)
	}
	s.Handle("/plums", http.RedirectHandler("/metrics", http.StatusFound))
	if code, body := get(t, strings.Replace(s.URL(), "metrics", "plums", 1)); code != http.StatusOK || !strings.Contains(body, "apples_total") {
		t.Errorf("code %d for a page that was added:\n%s", code, body)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(s.URL()); err == nil {
		t.Error("it answers after Close")
	}
}

func TestErrors(t *testing.T) {
	s, err := Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	busy := s.listener.Addr().String()
	if _, err := Start(busy); err == nil || !strings.Contains(err.Error(), busy) || !strings.HasSuffix(err.Error(), "; choose another address with --metrics") {
		t.Errorf("an address in use: %v", err)
	}
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "apples_total", Help: "Apples."})
	if _, err := Start("127.0.0.1:0", c, c); err == nil {
		t.Error("a collector that is there twice is taken")
	}
}
