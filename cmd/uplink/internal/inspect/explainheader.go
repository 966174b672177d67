package inspect

import (
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
)

// header explains the header of a payload of a stream, which may be nil.
func (e *Explained) header(s *stream, raw payload) {
	if len(raw.b) == 0 {
		return
	}
	h, err := inspect.ParseHeader(raw.b)
	at := 8 * raw.offset
	if err != nil {
		e.add(at, float64(8*len(raw.b)), 0, "payload", "%v", err)
		return
	}
	name := ""
	if s != nil {
		name = fmt.Sprintf(" of %s, codec %v", s.name, s.cfg.Codec)
	}
	e.add(at, float64(8*len(raw.b)), 0, "payload"+name, "%d bytes", len(raw.b))
	form := "short"
	if h.Long {
		form = "long"
	}
	e.add(at, float64(h.Bits), 0, "header", "%s form", form)
	if h.Long {
		e.longHeader(at, &h)
	} else {
		e.shortHeader(at, &h)
	}
}

func (e *Explained) shortHeader(at int, h *inspect.Header) {
	e.add(at, 1, 1, "form", "0, short")
	at++
	if h.Checked {
		e.add(at, 6, 1, "mark", "a hash follows")
		at += 6
	}
	n := 6
	switch {
	case h.RPC == 0:
		n = 1
	case h.RPC < 4:
		n = 3
	}
	e.add(at, float64(n), 1, "number of the RPC", "%d", h.RPC)
	e.add(at+n, 5, 1, "distance to the baseline", "%d frames", h.Distance)
	e.add(at+n+5, 7, 1, "sequence, low 7 bits", "%d", h.Seq)
	if h.Checked {
		e.add(at+n+12, 16, 1, "hash of the baseline", "%04x", h.Hash)
	}
}

func (e *Explained) longHeader(at int, h *inspect.Header) {
	base := h.Distance != 0
	e.add(at, 8, 1, "form and flags", "long, has a baseline: %v, has a hash: %v", base, h.Checked)
	e.add(at+8, 8, 1, "number of the RPC", "%d", h.RPC)
	e.add(at+16, 16, 1, "sequence, low 16 bits", "%d", h.Seq)
	if base {
		e.add(at+32, 8, 1, "distance to the baseline", "%d frames", h.Distance)
	} else {
		e.add(at+32, 8, 1, "epoch", "%d", h.Epoch)
	}
	if h.Checked {
		e.add(at+40, 16, 1, "hash of the baseline", "%04x", h.Hash)
	}
}
