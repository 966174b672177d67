package demopanel

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestPanelFiles: each module is served as what it is, and asks for nothing but modules that are
// there. None of them writes text as markup.
func TestPanelFiles(t *testing.T) {
	l, _ := newControls()
	asks := regexp.MustCompile(`(?:from|import\() ?'([^']+)'`)
	names, err := fs.Glob(Panel(), "*")
	if err != nil || len(names) < 3 {
		t.Fatalf("%v, %v", names, err)
	}
	types := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
	for _, name := range names {
		w := httptest.NewRecorder()
		l.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/demo/"+name, nil))
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != types[path.Ext(name)] {
			t.Errorf("%s: %d, %q", name, w.Code, got)
		}
		text := w.Body.String()
		for _, m := range asks.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(Panel(), path.Clean(m[1])); err != nil || !strings.HasPrefix(m[1], "./") {
				t.Errorf("%s asks for %s: %v", name, m[1], err)
			}
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "http:", "https:", "eval(", "url("} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
}
