package inspect

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// acks explains acks, behind the message's type.
func (e *Explained) acks(p *player, b []byte, at int) {
	for len(b) > 0 {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			e.note("%v", err)
			return
		}
		e.ack(p, &a, b[0]&1 != 0, at, len(b)-len(rest))
		at += 8 * (len(b) - len(rest))
		b = rest
	}
}

func (e *Explained) ack(p *player, a *rpcdelta.Ack, long bool, at, size int) {
	name := ""
	if s := p.streams[int(a.RPC)]; s != nil {
		name = " (" + s.name + ")"
	}
	e.add(at, float64(8*size), 0, "ack", "RPC %d%s", a.RPC, name)
	if long {
		e.add(at, 1, 1, "form", "1, long")
		e.add(at+1, 2, 1, "reason for a reset", "%s", resetText(a.ResetReason))
		e.add(at+3, 1, 1, "nothing was processed yet", "%v", a.None)
	} else {
		e.add(at, 1, 1, "form", "0, short")
		e.add(at+1, 3, 1, "number of the RPC", "%d", a.RPC)
	}
	e.add(at+4, 3, 1, "epoch", "%d", a.Epoch)
	e.add(at+7, 1, 1, "whole", "%v", a.Whole)
	window := 32
	raw := size > 4
	if long {
		raw = size > 5
		window += 8
	}
	e.add(at+8, 1, 1, "raw window", "%v", raw)
	e.add(at+9, 6, 1, "length of the window", "%d", a.Len)
	e.add(at+15, 1, 1, "spare", "0")
	e.add(at+16, 16, 1, "newest processed payload", "%d", a.Seq)
	if long {
		e.add(at+32, 8, 1, "number of the RPC", "%d", a.RPC)
	}
	if raw {
		e.add(at+window, float64(8*size-window), 1, "window", "%s", windowText(a))
	} else if a.Len > 0 {
		e.note("the %d before it were processed, every one", a.Len)
	}
}

func resetText(reason error) string {
	switch reason {
	case nil:
		return "none"
	case rpcdelta.ErrBaselineMissing:
		return "a baseline is missing"
	}
	return "desync"
}

// windowText draws the window, the newest first.
func windowText(a *rpcdelta.Ack) string {
	var b strings.Builder
	for i := range a.Len {
		if a.Window>>i&1 != 0 {
			b.WriteByte('+')
		} else {
			b.WriteByte('-')
		}
	}
	return fmt.Sprintf("%s: %d, %d and so on", b.String(), a.Seq-1, a.Seq-2)
}
