package status

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestHandle asks for each path, with each kind of readiness.
func TestHandle(t *testing.T) {
	var err error
	mux := http.NewServeMux()
	own := prometheus.NewGauge(prometheus.GaugeOpts{Name: "own"})
	if err := Handle(mux, map[string]string{"map": "dust"}, func() error { return err }, own); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		err  error
		code int
		want string
	}{
		{"/healthz", errors.New("broken"), 200, "ok\n"},
		{"/readyz", nil, 200, "ok\n"},
		{"/readyz", errors.New("broken"), 503, "broken\n"},
		{"/readyz", fmt.Errorf("a part: %w", Degraded(errors.New("broken"))), 200, "ok, but a part: broken\n"},
		{"/metrics", nil, 200, "\nown{map=\"dust\"} 0\n"},
		{"/metrics", nil, 200, "\ngo_goroutines{map=\"dust\"} "},
	} {
		err = c.err
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s, %v: %d, %.100s; want %d, %q", c.path, c.err, w.Code, w.Body, c.code, c.want)
		}
	}
	if err := Handle(http.NewServeMux(), nil, nil, own, own); err == nil {
		t.Error("a metric twice is no error")
	}
}
