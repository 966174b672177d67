package ds

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// maxRefusalsLogged is the number of refused bindings of a player that are logged.
	maxRefusalsLogged = 8
	// maxTheirs is the number of bytes of a field's description that an answer repeats.
	maxTheirs = 512
)

func (s *Server) answer(p *Player, r *control.BindRequest) {
	a := s.bind(p, r)
	if a.Reason != control.ReasonNone && a.Reason != control.ReasonDescribe && p.refusals < maxRefusalsLogged {
		p.refusals++
		asked, server := refusal(r, &a)
		p.note(bindEvent(a.Reason), fmt.Sprintf("%.64q: %s; asked for %.64q, permitted %.64q", r.Name, a.Reason, asked, server), nil)
		s.cfg.Logger.Warn("bind refused", "rpc", r.Name, "reason", a.Reason.String(), "asked", asked, "server", server, "player", p.ID())
	}
	b, err := appendAnswer(nil, a)
	if err == nil {
		err = p.conn.Send(b)
	}
	if err != nil {
		s.cfg.Logger.Debug("bind not answered", "rpc", r.Name, "player", p.ID(), "error", err)
	}
}

// refusal returns what a refused request asked for, and what the server has or permits.
func refusal(r *control.BindRequest, a *control.BindAnswer) (asked, server string) {
	switch a.Reason {
	case control.ReasonUnknown:
		return r.Name, strings.Join(a.Known, ", ")
	case control.ReasonSchema:
		return fmt.Sprintf("field %d of another kind", a.Field), cmp.Or(a.Theirs, "no field in common")
	case control.ReasonCodec:
		return r.Codec, strings.Join(a.Known, ", ")
	case control.ReasonNumber:
		return fmt.Sprintf("number %d", r.RPC), a.Theirs
	case control.ReasonInvalid:
		return fmt.Sprintf("ring %d, frames %d, batch %d, deadline %d", r.Ring, r.Frames, r.Batch, r.Deadline), a.Theirs
	case control.ReasonRate:
		return fmt.Sprint(r.RateHz, " Hz"), fmt.Sprint("up to ", a.LimitHz, " Hz")
	case control.ReasonTick:
		return fmt.Sprint(cmp.Or(r.RateHz, schema.DefaultRate), " Hz"), fmt.Sprint(a.LimitHz, " ticks per second")
	case control.ReasonReliable, control.ReasonDescribe, control.ReasonNone:
	}
	return "", ""
}

// appendAnswer appends an answer, without the known names that do not fit into a datagram.
func appendAnswer(dst []byte, a control.BindAnswer) ([]byte, error) {
	a.Theirs = a.Theirs[:min(len(a.Theirs), maxTheirs)]
	known := a.Known
	b, err := a.Append(dst)
	for n := len(known); err == nil && n > 0 && len(b)-len(dst) > transport.MaxPayload; {
		n /= 2
		a.Known = append(known[:n:n], "...")
		b, err = a.Append(dst)
	}
	return b, err
}

// bind binds an RPC, or refuses to, and returns the answer.
func (s *Server) bind(p *Player, r *control.BindRequest) control.BindAnswer {
	rpc, known := s.lookup(r.Name)
	if rpc == nil {
		return control.BindAnswer{RPC: uint8(r.RPC), Reason: control.ReasonUnknown, Known: known}
	}
	fields, a := fieldsOf(rpc.schema, r)
	if a.Reason != control.ReasonNone {
		return a
	}
	codec, err := rpcdelta.ParseCodec(r.Codec)
	if err != nil {
		a.Reason, a.Known = control.ReasonCodec, control.Codecs()
		return a
	}
	a.Ring = s.cfg.Ring
	if b := p.binding(int(r.RPC)); b != nil {
		if b.rpc != rpc || b.reliable != r.Reliable {
			a.Reason, a.Theirs = control.ReasonNumber, fmt.Sprintf("number %d is that of %.64s, reliable: %t", r.RPC, b.rpc.schema.RPC(), b.reliable)
		}
		a.Prior = priorHash(b.prior)
		return a // the client repeats the request: the answer was lost
	}
	err = cmp.Or(between("Frames", r.Frames, 0, rpcdelta.MaxHeld), between("Batch", r.Batch, 0, rpcdelta.MaxHeld), between("Deadline", r.Deadline, 0, rpcdelta.MaxRepairAge))
	switch {
	case err != nil:
		a.Reason, a.Theirs = control.ReasonInvalid, err.Error()
	case !(r.RateHz <= max(s.cfg.MaxRate, rpc.schema.RateHz())):
		a.Reason, a.LimitHz = control.ReasonRate, max(s.cfg.MaxRate, rpc.schema.RateHz())
	case rpc.buffer != nil && r.Reliable:
		a.Reason = control.ReasonReliable
	case rpc.buffer != nil && !isRate(cmp.Or(r.RateHz, schema.DefaultRate), s.cfg.TickHz):
		a.Reason, a.LimitHz = control.ReasonTick, s.cfg.TickHz
	case p.bound >= s.maxBindings():
		a.Reason, a.Theirs = control.ReasonNumber, fmt.Sprintf("the player has %d bindings, the maximum (ds.Config.MaxBindings)", p.bound)
	default:
		version, err := rpc.shards[p.shard.index].versionOf(rpc.schema, fields, r.RateHz, r.PerTick)
		if err != nil {
			refuse(&a, fields, err)
			return a
		}
		b, err := s.newBinding(p, rpc, version, r, codec)
		if err != nil { // no client declares such a ring
			a.Reason, a.Theirs = control.ReasonInvalid, err.Error()
			return a
		}
		p.grant(r.RateHz)
		a.Prior = priorHash(b.prior)
		s.cfg.Logger.Info("rpc bound", "rpc", r.Name, "rate_hz", r.RateHz, "reliable", r.Reliable, "player", p.ID())
		if c := version.conversion; c != nil {
			s.cfg.Logger.Info("rpc of another version", "rpc", r.Name, "fields_skipped", c.Skipped(), "fields_missing", c.Missing(), "player", p.ID())
		}
	}
	return a
}

// isRate reports whether two rates are equal but for rounding.
func isRate(a, b float64) bool { return math.Abs(a-b) <= b/1000 }

func (s *Server) newBinding(p *Player, rpc *rpc, version *version, r *control.BindRequest, codec rpcdelta.Codec) (*binding, error) {
	here := rpc.shards[p.shard.index]
	b := &binding{
		player: p, rpc: rpc, version: version, sink: rpc.sink, here: here, counts: here.counts(r.Reliable), number: int(r.RPC), reliable: r.Reliable,
		frames: uint64(max(r.Frames, 1)), batch: max(r.Batch+1, r.Frames/rpcdelta.MaxHeld*r.Frames), hz: cmp.Or(r.RateHz, schema.DefaultRate), rate: s.cfg.rate(r.RateHz), prior: s.prior(codec, r.Prior),
	}
	if rpc.time != nil {
		b.time = new(clientTime)
	}
	b.rate.Burst += spareFrames
	if b.reliable {
		b.rate.Burst += spareReliable
	}
	var buffer jitterBuffer
	var err error
	if rpc.buffer != nil {
		if buffer, err = rpc.newBuffer(p, b, r.Batch); err != nil {
			return nil, err
		}
		b.sink = buffer
	}
	if r.Deadline > 0 && !r.Reliable && codec == rpcdelta.Adaptive {
		b.repairTime, b.repairAge = max(0, r.Deadline-r.Batch), uint64(r.Deadline)
		if buffer == nil {
			b.sink = &sequencer{
				sink: b.sink, player: p, binding: b, schema: rpc.schema, deadline: r.Deadline, repairs: b.repairs,
				patience: time.Duration(float64(r.Deadline) / b.hz * float64(time.Second)),
			}
		}
	}
	if version.conversion != nil {
		b.sink = &converter{b.sink, version}
	}
	// A late frame can still be in time for its tick if there is a jitter buffer.
	deliverLate := s.cfg.DeliverLate || buffer != nil
	b.dec, err = rpcdelta.NewDecoder(version.rated, rpcdelta.DecoderConfig{
		Codec: codec, RPC: b.number, Ring: s.cfg.Ring, PeerRing: r.Ring, DeliverLate: deliverLate, RepairTime: b.repairTime, Prior: b.prior,
		Reliable: r.Reliable, Scratch: version.scratch,
	})
	if err != nil {
		return nil, err
	}
	p.acks.Lock()
	defer p.acks.Unlock()
	for len(p.bindings) <= b.number {
		p.bindings = append(p.bindings, nil)
	}
	p.bindings[b.number] = b
	p.bound++
	if buffer != nil {
		p.buffers = append(p.buffers, buffer)
		s.buffers.add(buffer)
	}
	if p.tap != nil {
		p.tap.Bound(Binding{
			RPC: b.number, Schema: version.schema, RateHz: r.RateHz, PerTick: r.PerTick, PeerRing: r.Ring, Frames: r.Frames, Ring: s.cfg.Ring, Codec: codec,
			Reliable: r.Reliable, DeliverLate: deliverLate, Deadline: r.Deadline, Batch: r.Batch, Prior: b.prior,
		})
	}
	if b.prior != nil && b.prior.Hash() != r.Prior {
		b.counts.update(func(total *RPCStats) { total.PriorFallbacks++ })
		s.cfg.Logger.Warn("prior not known, using the built-in one",
			"rpc", r.Name, "prior", prior.Name(r.Prior), "used", b.prior.String(), "player", p.ID())
	}
	return b, nil
}

func (p *Player) binding(n int) *binding {
	if n < len(p.bindings) {
		return p.bindings[n]
	}
	return nil
}

// prior returns the prior with a hash, or the built-in one if the server does not have it. It is
// nil if the codec uses none.
func (s *Server) prior(codec rpcdelta.Codec, hash uint64) *prior.Prior {
	if codec != rpcdelta.Adaptive {
		return nil
	}
	for _, p := range s.cfg.Priors {
		if p.Hash() == hash {
			return p
		}
	}
	return prior.Generic()
}

func priorHash(p *prior.Prior) uint64 {
	if p == nil {
		return 0
	}
	return p.Hash()
}
