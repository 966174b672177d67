package dashboard

import (
	"slices"
	"sync"
)

const (
	// maxPages is how many pages may be open at a time.
	maxPages = 32
	// backlog is how many events may wait for a page: half of it is sent each second.
	backlog = 16
)

// hub hands events to the pages that are open, the same bytes to all.
type hub struct {
	woken chan struct{} // a page was opened

	mu     sync.Mutex
	pages  map[*page]struct{}
	closed bool
}

// page is one that is open.
type page struct {
	events chan []byte // closed when the page is too slow, or the hub is closed
}

func newHub() hub {
	return hub{woken: make(chan struct{}, 1), pages: map[*page]struct{}{}}
}

// open adds a page, or gives nil if there are too many.
func (h *hub) open() *page {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.pages) == maxPages {
		return nil
	}
	p := &page{events: make(chan []byte, backlog)}
	h.pages[p] = struct{}{}
	return p
}

// wake has Run look at once.
func (h *hub) wake() {
	select {
	case h.woken <- struct{}{}:
	default: // it will
	}
}

// leave takes a page out.
func (h *hub) leave(p *page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(p)
}

func (h *hub) drop(p *page) {
	if _, in := h.pages[p]; in {
		delete(h.pages, p)
		close(p.events)
	}
}

// watched says whether a page is open.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.pages) > 0
}

// send hands an event to each page. One that cannot keep up is dropped: it comes back by
// itself, and gets the history again.
func (h *hub) send(event []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.pages {
		select {
		case p.events <- event:
		default:
			h.drop(p)
		}
	}
}

// close lets go of all pages.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for p := range h.pages {
		h.drop(p)
	}
}

// event is one of server-sent events.
func event(name string, data []byte) []byte {
	return slices.Concat([]byte("event: "+name+"\ndata: "), data, []byte("\n\n"))
}
