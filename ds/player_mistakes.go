package ds

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// maxMistakes is the number of differences between a player's client and the server that are logged
// and become events.
const maxMistakes = 8

// mistake counts a mistake of a player's client, and reports whether it is logged.
func (p *Player) mistake() bool {
	if p.mistakes == maxMistakes {
		return false
	}
	p.mistakes++
	return true
}

// bindRefused reports that the server refuses a request to bind.
func (p *Player) bindRefused(r *message.BindRequest, a *message.BindAnswer) {
	if !p.mistake() {
		return
	}
	asked, server := refusal(r, a)
	p.note(eventOf("bind_refused", reasonError(a.Reason)), fmt.Sprintf("%.64q: %s; asked for %.64q, permitted %.64q", r.Name, a.Reason, asked, server), nil)
	p.server.cfg.Logger.Warn("bind refused", "rpc", r.Name, "reason", a.Reason.String(), "asked", asked, "server", server, "player", p.ID())
}

// refusal describes, for the log, the requested value that the server refused, and the values that
// it permits.
func refusal(r *message.BindRequest, a *message.BindAnswer) (asked, server string) {
	switch a.Reason {
	case message.ReasonUnknown:
		return r.Name, strings.Join(a.Known, ", ")
	case message.ReasonSchema:
		return fmt.Sprintf("field %d of another kind", a.Field), cmp.Or(a.Theirs, "no field in common")
	case message.ReasonCodec:
		return r.Codec, strings.Join(a.Known, ", ")
	case message.ReasonNumber:
		return fmt.Sprintf("number %d", r.RPC), a.Theirs
	case message.ReasonInvalid:
		return fmt.Sprintf("ring %d, frames %d, batch %d, deadline %d", r.Ring, r.Frames, r.Batch, r.Deadline), a.Theirs
	case message.ReasonRate:
		return fmt.Sprint(r.RateHz, " Hz"), fmt.Sprint(minRate, " to ", a.LimitHz, " Hz")
	case message.ReasonFixedRate:
		return fmt.Sprint(cmp.Or(r.RateHz, schema.DefaultRate), " Hz"), fmt.Sprint(a.LimitHz, " Hz")
	case message.ReasonReliable, message.ReasonDescribe, message.ReasonNone:
	}
	return "", ""
}

// callRefused reports that a client refuses an RPC that the server calls.
func (p *Player) callRefused(name string, reason message.Reason, err error) {
	if !p.mistake() {
		return
	}
	p.note(eventOf("call_refused", reasonError(reason)), "", err)
	p.server.cfg.Logger.Warn("call refused", "rpc", name, "reason", reason.String(), "player", p.ID(), "error", err)
}

// differ logs the fields or types of objects that only one end has and that both ends ignore. kind
// is rpc, call or world, and name identifies it. asking and answering are server and client, in the
// order of d.
func (p *Player) differ(kind, name string, d message.Differences, asking, answering string) {
	if !d.Any() || !p.mistake() {
		return
	}
	text := d.Text(asking, answering)
	p.note(causeOf("mismatch", kind), fmt.Sprintf("%s %.64q: %s", kind, name, text), nil)
	p.server.cfg.Logger.Warn("both ends differ", "kind", kind, "name", name, "differences", text, "player", p.ID())
}
