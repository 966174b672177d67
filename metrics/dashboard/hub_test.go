package dashboard

import "testing"

// TestSlowPage checks that all pages share the bytes of an event, and that a page that does not
// read is dropped.
func TestSlowPage(t *testing.T) {
	h := newHub()
	fast, slow := h.open(), h.open()
	b := event("sample", []byte("{}"))
	for i := range backlog + 3 {
		h.send(b)
		if got, ok := <-fast.events; !ok || &got[0] != &b[0] {
			t.Fatalf("event %d: %q", i, got)
		}
	}
	n := 0
	for range slow.events { // closed
		n++
	}
	if n != backlog || len(h.pages) != 1 {
		t.Errorf("%d events wait for a page, %d pages are open", n, len(h.pages))
	}
	h.leave(slow)
	h.leave(fast)
	h.leave(fast)
	if h.watched() {
		t.Error("a page is open")
	}
}

// TestManyPages opens more pages than permitted.
func TestManyPages(t *testing.T) {
	h := newHub()
	var pages []*page
	for range maxPages {
		pages = append(pages, h.open())
	}
	if h.open() != nil {
		t.Error("a page above the limit is accepted")
	}
	h.leave(pages[7])
	if h.open() == nil {
		t.Error("a closed page is not replaced")
	}
	h.close()
	if h.watched() || h.open() != nil {
		t.Error("pages are open after close")
	}
	if _, ok := <-pages[0].events; ok {
		t.Error("a page stays open after close")
	}
}
