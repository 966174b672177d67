package ds

import (
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// maxRefusals is how many refused bindings of a player are logged.
	maxRefusals = 8
	// maxTheirs is how many bytes of a field's description an answer carries.
	maxTheirs = 512
)

// answer answers a request to bind an RPC.
func (s *Server) answer(p *Player, r *control.BindRequest) {
	a := s.bind(p, r)
	if a.Reason != control.ReasonNone && p.refusals < maxRefusals {
		p.refusals++
		s.cfg.Logger.Warn("bind refused", "rpc", r.Name, "reason", a.Reason, "player", p.ID())
	}
	b, err := appendAnswer(nil, a)
	if err == nil {
		err = p.conn.Send(b)
	}
	if err != nil {
		s.cfg.Logger.Debug("bind not answered", "rpc", r.Name, "player", p.ID(), "error", err)
	}
}

// appendAnswer appends an answer. Names that do not fit a datagram are left out.
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

// bind binds an RPC if it can, and says what to answer.
func (s *Server) bind(p *Player, r *control.BindRequest) control.BindAnswer {
	rpc, known := s.lookup(r.Name)
	if rpc == nil {
		return control.BindAnswer{RPC: uint8(r.RPC), Reason: control.ReasonUnknown, Known: known}
	}
	a := control.Compare(rpc.schema, r)
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
			a.Reason = control.ReasonNumber
		}
		a.Prior = priorHash(b.prior)
		return a // asked again: the answer was lost
	}
	if r.Frames < 0 || r.Frames > rpcdelta.MaxHeld || !(r.RateHz <= max(s.cfg.MaxRate, rpc.schema.RateHz())) {
		a.Reason = control.ReasonInvalid
		return a
	}
	if p.bound() >= s.maxBindings() {
		a.Reason = control.ReasonNumber
		return a
	}
	b := &binding{rpc: rpc, sink: rpc.sink, number: int(r.RPC), reliable: r.Reliable, frames: uint64(max(r.Frames, 1)), rate: s.cfg.frameRate(r.RateHz, r.Reliable)}
	waits, err := s.newBuffer(p, b, r.RateHz)
	if err != nil {
		a.Reason = control.ReasonInvalid
		return a
	}
	deliverLate := s.cfg.DeliverLate || waits != nil // its frame time may still be to come
	prior := s.prior(codec, r.Prior)
	here := rpc.shards[p.shard.index]
	dec, err := here.decoder(rpc.schema, r.RateHz, rpcdelta.DecoderConfig{
		Codec: codec, RPC: int(r.RPC), Ring: s.cfg.Ring, PeerRing: r.Ring, DeliverLate: deliverLate, Prior: prior, Reliable: r.Reliable,
	})
	if err != nil { // a rate or a ring that no client has
		a.Reason = control.ReasonInvalid
		return a
	}
	b.here, b.counts, b.dec, b.prior = here, here.counts(r.Reliable), dec, prior
	p.bind(int(r.RPC), b)
	if waits != nil {
		b.sink = waits
		p.buffers = append(p.buffers, waits)
		s.buffers.add(waits)
	}
	if p.tap != nil {
		p.tap.Bound(Binding{
			RPC: int(r.RPC), Schema: rpc.schema, RateHz: r.RateHz, PeerRing: r.Ring, Frames: r.Frames, Ring: s.cfg.Ring, Codec: codec,
			Reliable: r.Reliable, DeliverLate: deliverLate, Prior: prior,
		})
	}
	p.grant(r.RateHz)
	a.Prior = priorHash(prior)
	s.fellBack(p, here, r, prior)
	s.cfg.Logger.Info("rpc bound", "rpc", r.Name, "rate_hz", r.RateHz, "reliable", r.Reliable, "player", p.ID())
	return a
}

// decoder makes the decoder of one player's frames, which come at that rate.
func (r *rpcShard) decoder(rpcSchema *schema.Schema, rateHz float64, cfg rpcdelta.DecoderConfig) (*rpcdelta.Decoder, error) {
	s, err := r.rates.at(rpcSchema, rateHz)
	if err != nil {
		return nil, err
	}
	cfg.Scratch = r.scratch
	return rpcdelta.NewDecoder(s, cfg)
}
