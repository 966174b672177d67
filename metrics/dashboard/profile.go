package dashboard

import (
	"slices"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// profile contains the bits of the measured frames of an RPC, since a page was opened.
type profile struct {
	RPC      string       `json:"rpc"`
	Frames   uint64       `json:"frames"`
	Payloads uint64       `json:"payloads"`
	Full     uint64       `json:"full"`
	Header   uint64       `json:"header"`
	Count    float64      `json:"count"`
	Rounding float64      `json:"rounding"`
	Fields   []fieldTotal `json:"fields"`
}

type fieldTotal struct {
	Name string  `json:"name"`
	Kind string  `json:"kind"`
	Full uint64  `json:"full"`
	Bits float64 `json:"bits"`
}

func newProfile(p *ds.RPCProfile) profile {
	out := profile{
		RPC: p.RPC, Frames: p.Frames, Payloads: p.Payloads, Full: p.FullBits, Header: p.HeaderBits,
		Count: p.CountBits, Rounding: p.RoundingBits,
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		out.Fields = append(out.Fields, fieldTotal{f.Name, string(f.Kind), f.FullBits, f.Bits})
	}
	return out
}

// spent contains the bits of the measured frames between two samples, for each field in order.
type spent struct {
	RPC    string    `json:"rpc"`
	Frames uint64    `json:"frames"`
	Rest   float64   `json:"rest"` // header, count and rounding
	Fields []float64 `json:"fields"`
}

func (p *profile) rest() float64 { return float64(p.Header) + p.Count + p.Rounding }

func (p *profile) since(before *profile) spent {
	if before.Frames > p.Frames {
		before = &profile{}
	}
	s := spent{RPC: p.RPC, Frames: p.Frames - before.Frames, Rest: p.rest() - before.rest()}
	for i, f := range p.Fields {
		if i < len(before.Fields) {
			f.Bits -= before.Fields[i].Bits
		}
		s.Fields = append(s.Fields, max(0, f.Bits))
	}
	return s
}

type profiles struct {
	source []ds.RPCProfile
	all    []profile
	before []profile
}

// step replaces the profiles by the newest ones.
func (p *profiles) step(now []ds.RPCProfile) {
	p.source, p.before = now, p.all
	p.all = make([]profile, 0, len(now))
	for i := range now {
		p.all = append(p.all, newProfile(&now[i]))
	}
}

// spent returns the bits of the frames measured in the last step.
func (p *profiles) spent() []spent {
	var out []spent
	for i := range p.all {
		before := &profile{}
		if j := slices.IndexFunc(p.before, func(b profile) bool { return b.RPC == p.all[i].RPC }); j >= 0 {
			before = &p.before[j]
		}
		if s := p.all[i].since(before); s.Frames > 0 {
			out = append(out, s)
		}
	}
	return out
}

type fieldDetail struct {
	RPC    string `json:"rpc"`
	Index  int    `json:"index"`
	Schema string `json:"schema"` // the description that both endpoints compare
	Frames uint64 `json:"frames"`
	fieldTotal
	Flag       float64           `json:"flag"` // bits of the flags of changes
	Predictors []string          `json:"predictors"`
	Components []componentDetail `json:"components"`
}

type componentDetail struct {
	Bits       float64  `json:"bits"`
	Held       uint64   `json:"held"`
	Residuals  []uint64 `json:"residuals"` // [0]: zero; [i]: 2^(i-1) <= |residual| < 2^i
	Predictors []uint64 `json:"predictors"`
}

const maxDetailed = 64

// field returns the statistics of a field, or nil if there is none with this index.
func (p *profiles) field(rpc string, index int) *fieldDetail {
	i := slices.IndexFunc(p.source, func(s ds.RPCProfile) bool { return s.RPC == rpc })
	if i < 0 || index < 0 || index >= len(p.source[i].Fields) {
		return nil
	}
	s := &p.source[i]
	f := &s.Fields[index]
	out := &fieldDetail{
		RPC: rpc, Index: index, Schema: s.Schema.Fields()[index].String(), Frames: s.Frames,
		fieldTotal: p.all[i].Fields[index], Flag: f.FlagBits,
	}
	for i := range len(rpcdelta.ComponentProfile{}.Predictors) {
		out.Predictors = append(out.Predictors, rpcdelta.PredictorName(i))
	}
	for j := range f.Components[:min(len(f.Components), maxDetailed)] {
		c := &f.Components[j]
		out.Components = append(out.Components, componentDetail{c.Bits, c.Held, trimmed(c.Residuals[:]), c.Predictors[:]})
	}
	return out
}

// trimmed returns counts without trailing zeros.
func trimmed(counts []uint64) []uint64 {
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return counts
}
