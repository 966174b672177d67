package demopanel

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// watch looks at an actor for so long in virtual time, while play runs, and gives the data of the
// events by name.
func watch(t *testing.T, l *Controls, actor string, play func()) map[string][]string {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/demo/view?actor="+actor, nil))
	}()
	synctest.Wait()
	play()
	leave()
	<-done
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != "text/event-stream" {
		t.Errorf("%d, %s: %s", w.Code, got, w.Body)
	}
	events := map[string][]string{}
	for event := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("event %q", event)
		}
		events[name] = append(events[name], data)
	}
	return events
}

// TestView plays two seconds: every frame is in the view once, in at most 30 events a second.
func TestView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newControls()
		rocket := sample.RocketLeague()
		const frames = 120
		events := watch(t, l, "1", func() {
			for i := range frames {
				l.stage.Sent(1, i, rocket.At(i))
				l.stage.Sent(0, i, sample.Portal2().At(i)) // nobody looks at this one
				if i%3 > 0 {
					l.stage.Rebuilt(1, i, rocket.At(i), i%3 == 1)
				}
				time.Sleep(time.Second / 60)
			}
			time.Sleep(viewEvery)
		})
		var sent, rebuilt [][]float64
		for _, e := range events["poses"] {
			var p struct{ Sent, Rebuilt [][]float64 }
			uplinktest.Must(t, json.Unmarshal([]byte(e), &p))
			sent, rebuilt = append(sent, p.Sent...), append(rebuilt, p.Rebuilt...)
		}
		if n := len(events["poses"]); n < 30 || n > 62 {
			t.Errorf("%d events with poses in two seconds", n)
		}
		if n := len(events["state"]); n != 2 {
			t.Errorf("%d events with the state in two seconds", n)
		}
		var hello introduction
		if len(events["hello"]) != 1 || json.Unmarshal([]byte(events["hello"][0]), &hello) != nil {
			t.Fatalf("%q", events["hello"])
		}
		if hello.Actor != 1 || hello.Name != sample.RocketLeagueName || hello.Rate != 30 || !hello.Moves || len(hello.Path) < maxPath/2 || len(hello.Path) > maxPath {
			t.Errorf("%+v", hello)
		}
		if len(sent) != frames || len(rebuilt) != frames*2/3 {
			t.Fatalf("%d frames sent and %d rebuilt", len(sent), len(rebuilt))
		}
		for i, row := range sent {
			if len(row) != 6 || row[0] != float64(i) {
				t.Errorf("frame %d: %v", i, row)
			}
		}
		for i, row := range rebuilt {
			n := 3*(i/2) + i%2 + 1
			if len(row) != 7 || row[0] != float64(n) || !slices.Equal(row[:6], sent[n]) || row[6] != float64(1-i%2) {
				t.Errorf("frame %d: %v, sent %v", n, row, sent[n])
			}
		}
		if n := l.stage.viewers.Load(); n != 0 || l.stage.actors[1].watched.Load() {
			t.Errorf("%d viewers are left", n)
		}
	})
}

// TestSlowViewer: the backlog of a slow viewer is bounded.
func TestSlowViewer(t *testing.T) {
	l, _ := newControls()
	v := l.stage.look(0)
	defer l.stage.leave(v)
	for i := range 3 * maxWaiting {
		l.stage.Sent(0, i, sample.Portal2().At(i))
		l.stage.Rebuilt(0, i, sample.Portal2().At(i), false)
	}
	if sent, rebuilt := v.take(nil, nil); len(sent) != maxWaiting || len(rebuilt) != maxWaiting {
		t.Errorf("%d and %d wait", len(sent), len(rebuilt))
	}
}

func TestViewErrors(t *testing.T) {
	l, _ := newControls()
	for _, actor := range []string{"", "-1", "2", "x", "1e9"} {
		code, body := call(l, "GET", "/demo/view?actor="+actor, "")
		if code != http.StatusBadRequest || body != `actor is "`+actor+"\": want a number from 0 to 1\n" {
			t.Errorf("%s: %d %s", actor, code, body)
		}
	}
	for range maxViewers {
		v := l.stage.look(1)
		defer l.stage.leave(v)
	}
	w := httptest.NewRecorder()
	l.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/demo/view?actor=0", nil))
	const full = "32 viewers are connected: close a page of the demo\n"
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Body.String() != full {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestNobodyLooks: then a frame costs nothing worth measuring, and allocates nothing.
func TestNobodyLooks(t *testing.T) {
	l, _ := newControls()
	f := sample.Portal2().At(0)
	if n := allocs.PerRun(100, func() {
		l.stage.Sent(0, 0, f)
		l.stage.Rebuilt(0, 0, f, false)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// broken is a viewer whose connection fails.
type broken struct{ httptest.ResponseRecorder }

func (b *broken) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }

// TestGone: a viewer who has gone without a word is forgotten.
func TestGone(t *testing.T) {
	l, _ := newControls()
	l.Handler().ServeHTTP(&broken{}, httptest.NewRequestWithContext(t.Context(), "GET", "/demo/view?actor=0", nil))
	if n := l.stage.viewers.Load(); n != 0 {
		t.Errorf("%d viewers are left", n)
	}
}
