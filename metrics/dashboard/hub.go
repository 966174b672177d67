package dashboard

import (
	"slices"
	"sync"
)

const (
	// maxPages is the maximum number of open pages.
	maxPages = 32
	// backlog is the maximum number of queued events per page; half as many are sent each second.
	backlog = 16
)

// hub distributes events to the open pages. All pages share their bytes.
type hub struct {
	woken chan struct{} // a page was opened

	mu     sync.Mutex
	pages  map[*page]struct{}
	closed bool
}

type page struct {
	events chan []byte // closed when the page is too slow, or the hub is closed
}

func newHub() hub {
	return hub{woken: make(chan struct{}, 1), pages: map[*page]struct{}{}}
}

// open adds a page, or returns nil if there are too many.
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

// wake makes Run publish immediately.
func (h *hub) wake() {
	select {
	case h.woken <- struct{}{}:
	default: // a wake-up is pending already
	}
}

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

func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.pages) > 0
}

// send queues an event for each page. A page that is too slow is closed; it reconnects and gets the
// history again.
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

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for p := range h.pages {
		h.drop(p)
	}
}

func event(name string, data []byte) []byte {
	return slices.Concat([]byte("event: "+name+"\ndata: "), data, []byte("\n\n"))
}
