package demopanel

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

// game is one that notes its settings.
type game struct {
	mu       sync.Mutex
	settings Settings
	err      error // of Change
}

func (g *game) Settings() Settings {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settings
}

func (g *game) Change(s Settings) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.settings = s
	}
	return g.err
}

func (g *game) Traffic() Traffic { return Traffic{Calls: 250, Clients: 2} }

func newControls() (*Controls, *game) {
	g := &game{settings: begun}
	return New(g, NewStage([]*trace.Trace{sample.Portal2(), sample.RocketLeague()})), g
}

// call makes a request and returns the answer.
func call(l *Controls, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	l.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestState(t *testing.T) {
	l, g := newControls()
	read := func(body string) (s state) {
		t.Helper()
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return s
	}
	code, body := call(l, "GET", "/demo/state", "")
	s := read(body)
	if code != http.StatusOK || *s.Settings.Loss != 0.05 || *s.Settings.RTT != 80 || *s.Settings.Redundancy != "auto" {
		t.Errorf("%d: %s", code, body)
	}
	if s.Limits.RTT.Max != 1000 || s.Traffic.Calls != 250 || len(s.Actors) != 2 || s.Actors[1].Name != sample.RocketLeagueName {
		t.Errorf("%+v", s)
	}

	post := func(body string) (int, string) { return call(l, "POST", "/demo/state", body) }
	code, body = post(`{"loss":0.5,"codec":"rle"}`)
	if s := read(body); code != http.StatusOK || *s.Settings.Loss != 0.5 || *s.Settings.Codec != "rle" || g.Settings().Link.Seed != begun.Link.Seed {
		t.Errorf("%d: %s", code, body)
	}
	if code, body = post(`{"loss":2}`); code != http.StatusBadRequest || body != "loss is 2: want a number from 0 to 1\n" {
		t.Errorf("%d: %s", code, body)
	}
	if code, body = post(`{"codec":"` + strings.Repeat("x", maxChange) + `"}`); code != http.StatusRequestEntityTooLarge || body != "the body is too large: want at most 4096 bytes\n" {
		t.Errorf("%d: %s", code, body)
	}
	if g.Settings().Link.Loss != 0.5 {
		t.Errorf("a bad change was made: %+v", g.Settings())
	}
	g.err = errors.New("the game is over")
	if code, body = post(`{"loss":0}`); code != http.StatusBadRequest || body != "the game is over\n" {
		t.Errorf("%d: %s", code, body)
	}
	for _, c := range []struct {
		method, path string
		code         int
	}{{"PUT", "/demo/state", 405}, {"POST", "/demo/view", 405}, {"GET", "/demo/nothing", 404}, {"GET", "/state", 404}} {
		if code, _ := call(l, c.method, c.path, "{}"); code != c.code {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, code, c.code)
		}
	}
}

// TestChangesTogether: none of many changes at once undoes another.
func TestChangesTogether(t *testing.T) {
	l, g := newControls()
	var all sync.WaitGroup
	for _, body := range []string{`{"loss":0.5}`, `{"burst":3}`, `{"rtt_ms":10}`, `{"jitter_ms":5}`, `{"codec":"rle"}`, `{"redundancy":"2"}`} {
		all.Go(func() {
			if code, answer := call(l, "POST", "/demo/state", body); code != http.StatusOK {
				t.Errorf("%s: %d, %s", body, code, answer)
			}
		})
	}
	all.Wait()
	want, err := change(`{"loss":0.5,"burst":3,"rtt_ms":10,"jitter_ms":5,"codec":"rle","redundancy":"2"}`)
	if got := g.Settings(); err != nil || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
