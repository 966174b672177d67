package inspect

import (
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
)

// Row is a frame, or a payload that delivered no frame.
type Row struct {
	Record  int     `json:"record"`
	Seconds float64 `json:"seconds"`
	Player  uint64  `json:"player"`
	RPC     string  `json:"rpc"`
	Seq     uint64  `json:"seq"`
	Kind    string  `json:"kind,omitempty"`
	// BaselineAge is the number of frames from the baseline to the payload's newest frame.
	// Redundant is the number of frames in the payload that had arrived earlier.
	BaselineAge int  `json:"baseline_age,omitempty"`
	Redundant   int  `json:"redundant,omitempty"`
	Late        bool `json:"late,omitempty"`
	// Only the newest frame of a payload has the sizes of header and payload.
	FullBits    int `json:"full_bits,omitempty"`
	HeaderBits  int `json:"header_bits,omitempty"`
	PayloadBits int `json:"payload_bits,omitempty"`
	// Drop is the reason of a drop.
	Drop string `json:"drop,omitempty"`
	// Check is "same" if the payload decoded to the same frame. Otherwise it is the difference, or
	// the reason why it was not decoded.
	Check string `json:"check"`
}

const same = "same"

func (p *player) decoded(x *inspection, b *record.Decoded) {
	s := p.streams[b.RPC]
	raw, ok := p.next()
	if s == nil {
		x.sum.Check.AfterLoss++
		return
	}
	if !ok { // the record is in an earlier file, or lost
		if s.ready {
			s.stop(afterLoss)
		}
		if x.options.wants(p.session.Player, s.name, x.at.At) {
			x.rpc(s).Undecoded += uint64(b.Frames)
			p.session.Frames += uint64(b.Frames)
			x.checked(s.why, "")
		}
		return
	}
	told := p.explaining(s, raw)
	frames, why, differs := s.again(raw.b, b)
	told.decoded(s, b, frames, why, differs)
	if !x.options.wants(p.session.Player, s.name, p.waiting.at.At) {
		return
	}
	r := x.rpc(s)
	r.Payloads++
	r.Bytes += uint64(len(raw.b))
	check := x.checked(why, differs)
	row := Row{Record: p.waiting.at.Number, Seconds: p.waiting.at.At.Seconds(), Player: p.session.Player, RPC: s.name, Check: check}
	if len(frames) == 0 {
		r.Undecoded += uint64(b.Frames)
		p.session.Frames += uint64(b.Frames)
		row.Seq, row.Kind = b.Seq, b.Kind.String()
		if h, err := inspect.ParseHeader(raw.b); err == nil {
			row.HeaderBits, row.BaselineAge = h.Bits, h.Distance
			row.PayloadBits = 8*len(raw.b) - h.Bits
		}
		x.row(row)
		return
	}
	p.session.Frames += uint64(len(frames))
	frames[len(frames)-1].Redundant += 1 - len(frames)
	for i := range frames {
		d := &frames[i]
		r.Stats.Count(&d.Info)
		if x.options.frame != nil {
			x.options.frame(x, p.session.Player, s.schema, d)
		}
		if d.Late {
			r.Late++
		}
		row.Seq, row.Kind, row.BaselineAge, row.Redundant, row.Late = d.Seq, d.Kind.String(), d.BaselineAge, d.Redundant, d.Late
		row.FullBits, row.HeaderBits, row.PayloadBits = d.FullBits, d.HeaderBits, d.PayloadBits
		x.row(row)
	}
}

func (p *player) dropped(x *inspection, b *record.Dropped) {
	s := p.streams[b.RPC]
	raw, ok := p.next()
	why, differs := "", ""
	told := p.explaining(s, raw)
	if s != nil && ok && b.Decoder {
		why, differs = s.refuse(raw.b, b.Reason)
	}
	told.dropped(s, b, why, differs)
	name := ""
	if s != nil {
		name = s.name
	}
	at := x.at
	if p.waiting != nil {
		at = p.waiting.at
	}
	if !x.options.wants(p.session.Player, name, at.At) {
		return
	}
	p.session.Drops++
	row := Row{Record: at.Number, Seconds: at.At.Seconds(), Player: p.session.Player, RPC: name, Drop: b.Reason, Check: same}
	if s == nil {
		x.limits.count(x.sum.Drops, b.Reason, x.sum.Drops[b.Reason]+1)
		x.row(row)
		return
	}
	drops := x.rpc(s).Drops
	x.limits.count(drops, b.Reason, drops[b.Reason]+1)
	if b.Decoder {
		row.Check = x.checked(why, differs)
	}
	if h, err := inspect.ParseHeader(raw.b); err == nil {
		row.Seq, row.BaselineAge, row.HeaderBits, row.PayloadBits = uint64(h.Seq), h.Distance, h.Bits, 8*len(raw.b)-h.Bits
	}
	x.row(row)
}

func (p *player) withheld(x *inspection, b *record.Withheld) {
	s := p.streams[b.RPC]
	if p.waiting != nil && p.waiting.explain != nil {
		p.waiting.explain.note("frame %d was decoded, but not given to the game: %s", b.Seq, b.Reason)
	}
	if s != nil && x.options.wants(p.session.Player, s.name, x.at.At) {
		withheld := x.rpc(s).Withheld
		x.limits.count(withheld, b.Reason, withheld[b.Reason]+1)
	}
}

// checked counts a payload by the result of decoding it.
func (x *inspection) checked(why, differs string) string {
	c := &x.sum.Check
	switch {
	case differs != "":
		c.Differ++
		if c.First == "" {
			c.First, c.FirstRecord = differs, x.at.Number
		}
		return "differs: " + differs
	case why == "":
		c.Same++
		return same
	case why == beforeFile || why == beforeOwn:
		c.Before++
	case why == afterLoss:
		c.AfterLoss++
	default:
		c.Broken++
	}
	return why
}

func (x *inspection) row(r Row) {
	if x.options.Each != nil {
		x.options.Each(r)
	}
}
