package ds

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/transport"
)

func (s *Server) answer(p *Player, r *message.BindRequest) {
	a := s.bind(p, r)
	if a.Reason != message.ReasonNone && a.Reason != message.ReasonDescribe {
		p.bindRefused(r, &a)
	}
	b, err := a.Fit(nil, transport.MaxPayload)
	if err == nil {
		err = p.conn.Send(b)
	}
	if err != nil {
		s.cfg.Logger.Debug("bind not answered", "rpc", r.Name, "player", p.ID(), "error", err)
	}
}

// bind binds an RPC, or refuses to, and returns the answer.
func (s *Server) bind(p *Player, r *message.BindRequest) message.BindAnswer {
	rpc, known := s.lookup(r.Name)
	if rpc == nil {
		message.SortByDistance(known, r.Name) // the last ones may not fit into the answer
		return message.BindAnswer{RPC: r.RPC, Reason: message.ReasonUnknown, Known: known}
	}
	a := message.BindAnswer{RPC: r.RPC, Ring: s.cfg.Tuning.Ring}
	if b := p.bindings.find(rpc, int(r.RPC)); b != nil {
		if asked := requestOf(r); b.rpc != rpc || b.request != asked {
			a.Reason, a.Theirs = message.ReasonNumber, b.conflict(rpc, &asked)
		}
		a.Prior, a.Ring = priorHash(b.prior), b.ring
		a.Report(b.version.differences())
		return a // the client repeats the request: the answer was lost
	}
	if s.checkRequest(&a, rpc, r); a.Reason != message.ReasonNone {
		return a
	}
	codec, err := rpcdelta.ParseCodec(r.Codec)
	if err != nil {
		a.Reason, a.Known = message.ReasonCodec, message.Codecs()
		return a
	}
	fields := fieldsOf(&a, rpc.schema, r)
	if a.Reason != message.ReasonNone {
		return a
	}
	version, err := rpc.shards[p.shard.index].versionOf(rpc.schema, fields, cmp.Or(r.RateHz, schema.DefaultRate), r.PerTick)
	if err != nil {
		refuse(&a, rpc.schema, fields, err)
		return a
	}
	memory, most := p.memory+memoryOf(version.schema, version.schema == rpc.schema, s.cfg.Tuning.Ring), s.bindingMemory()
	if memory > most {
		a.Reason = message.ReasonInvalid
		a.Theirs = fmt.Sprintf("the bindings would take %d bytes, want at most %d, twice those with the server's fields: update the server first", memory, most)
		return a
	}
	b, err := s.newBinding(p, rpc, version, r, codec)
	if err != nil {
		a.Reason, a.Theirs = message.ReasonInvalid, err.Error()
		return a
	}
	p.memory = memory
	p.limits.grant(&s.cfg, b.hz, frameSize(rpc.schema))
	a.Prior, a.Ring = priorHash(b.prior), b.ring
	s.cfg.Logger.Info("rpc bound", "rpc", r.Name, "rate_hz", r.RateHz, "reliable", r.Reliable, "converted", version.converted(), "player", p.ID())
	a.Report(version.differences())
	p.differ("rpc", r.Name, a.Differences(), "client", "server")
	return a
}

// minRate is the lowest rate, in calls per second, with which an RPC can be bound.
const minRate = 0.001

// checkRequest sets the reason of an answer if a number of the request is out of its range. It is
// cheap, so it is called before the fields of the request are processed.
func (s *Server) checkRequest(a *message.BindAnswer, rpc *rpc, r *message.BindRequest) {
	hz, fixed, limit := cmp.Or(r.RateHz, schema.DefaultRate), rpc.fixedRate(&s.cfg), max(s.cfg.Limits.MaxRate, rpc.schema.RateHz())
	limit = max(limit, fixed)
	err := cmp.Or(
		between("Ring", cmp.Or(r.Ring, rpcdelta.DefaultRing), 2, rpcdelta.MaxRing), between("Frames", r.Frames, 0, rpcdelta.MaxHeld),
		between("Batch", r.Batch, 0, rpcdelta.MaxHeld), between("Deadline", r.Deadline, 0, rpcdelta.MaxRepairAge),
	)
	switch {
	case err != nil:
		a.Reason, a.Theirs = message.ReasonInvalid, err.Error()
	case between("RateHz", hz, minRate, limit) != nil:
		a.Reason, a.LimitHz = message.ReasonRate, limit
	case rpc.buffer != nil && r.Reliable:
		a.Reason = message.ReasonReliable
	case fixed != 0 && math.Abs(hz-fixed) > fixed/1000:
		a.Reason, a.LimitHz = message.ReasonFixedRate, fixed
	}
}

func (s *Server) newBinding(p *Player, rpc *rpc, version *version, r *message.BindRequest, codec rpcdelta.Codec) (*binding, error) {
	here := rpc.shards[p.shard.index]
	// A ring of larger frames has fewer of them: it takes no more memory than one of the server's.
	ours, theirs := frameSize(rpc.schema), frameSize(version.schema)
	ring := max(2, s.cfg.Tuning.Ring*ours/max(ours, theirs))
	b := &binding{
		ring: ring, of: &p.bindings, rpc: rpc, version: version, sink: rpc.sink, here: here, counts: here.counts(r.Reliable), number: int(r.RPC), reliable: r.Reliable,
		request: requestOf(r), frames: uint64(max(r.Frames, 1)), batch: max(r.Batch+1, r.Frames/rpcdelta.MaxHeld*r.Frames), hz: cmp.Or(r.RateHz, schema.DefaultRate), frameSize: theirs, rate: s.cfg.rate(r.RateHz), prior: s.prior(codec, r.Prior),
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
	deliverLate := s.cfg.Tuning.DeliverLate || buffer != nil
	b.dec, err = rpcdelta.NewDecoder(version.schema, rpcdelta.DecoderConfig{
		Codec: codec, RPC: b.number, Ring: b.ring, PeerRing: r.Ring, DeliverLate: deliverLate, RepairTime: b.repairTime, Prior: b.prior,
		Reliable: r.Reliable, Scratch: here.scratch,
	})
	if err != nil {
		return nil, err
	}
	if rpc.time != nil {
		b.time = rpc.time.clock(p.ClientID())
	}
	p.bindings.Lock()
	defer p.bindings.Unlock()
	p.bindings.add(b, buffer)
	if buffer != nil {
		s.buffers.add(buffer)
	}
	if p.tap != nil {
		p.tap.Bound(Binding{
			RPC: b.number, Schema: version.schema, RateHz: r.RateHz, PerTick: r.PerTick, PeerRing: r.Ring, Frames: r.Frames, Ring: b.ring, Codec: codec,
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

// prior returns the prior with a hash, or the built-in one if the server does not have it. It is
// nil if the codec uses none.
func (s *Server) prior(codec rpcdelta.Codec, hash uint64) *prior.Prior {
	if codec != rpcdelta.Adaptive {
		return nil
	}
	for _, p := range s.cfg.Tuning.Priors {
		if p.Hash() == hash {
			return p
		}
	}
	return prior.Generic()
}
