package client

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/transport"
)

// bindCall handles a request of the server, and answers it.
func (l *link) bindCall(b []byte) error {
	r, err := message.ParseBindRequest(b)
	if err != nil {
		return err
	}
	if int(r.RPC) != len(l.calls) || len(l.calls) >= message.MaxCalls {
		return fmt.Errorf("%w: a request to bind RPC %d, want %d, up to %d", message.ErrMalformed, r.RPC, len(l.calls), message.MaxCalls-1)
	}
	a := message.BindAnswer{RPC: r.RPC, Ring: rpcdelta.DefaultRing}
	in, err := l.newIncoming(&r, &a)
	if err != nil {
		return fmt.Errorf("%w: a request to bind RPC %d: %w", message.ErrMalformed, r.RPC, err)
	}
	l.calls = append(l.calls, in)
	if a.Reason != message.ReasonNone {
		l.cfg.Logger.Warn("call refused", "rpc", shown(r.Name), "reason", a.Reason.String())
	} else if d := a.Differences(); d.Any() {
		l.mismatches.add(&MismatchError{RPC: r.Name, call: true, Here: d.Answering, There: d.Asking})
		l.own.Wake(time.Now()) // Tick reports it
	}
	answer, err := a.Fit(nil, transport.MaxPayload)
	if err == nil {
		err = l.own.SendReliable(answer)
	}
	if err != nil { // the session has ended, or will
		l.cfg.Logger.Debug("call not answered", "rpc", shown(r.Name), "error", err)
	}
	return nil
}

// newIncoming binds an RPC as requested, or sets the reason for the refusal in a. It returns an
// error if no correct server sends such a request.
func (l *link) newIncoming(r *message.BindRequest, a *message.BindAnswer) (*incoming, error) {
	in := &incoming{reliable: r.Reliable}
	t, known := l.cfg.Handlers.lookup(r.Name)
	if t == nil {
		a.Reason, a.Known = message.ReasonUnknown, known
		return in, nil
	}
	own, fields := t.schema(), make([]string, len(r.Described))
	for i, d := range r.Described {
		if d.Field != i || i >= schema.MaxFields {
			return nil, fmt.Errorf("field %d at %d", d.Field, i)
		}
		fields[i] = d.Description
	}
	there := own
	if r.Fingerprint != own.Fingerprint() {
		var err error
		if there, err = versions.Parse(r.Name, fields); err != nil {
			return nil, err
		}
		if in.conversion, err = versions.New(there, own); err != nil {
			a.Reason, a.Theirs = message.ReasonSchema, shown(err.Error())
			return in, nil
		}
		a.Report(message.Differences{Asking: in.conversion.Skipped(), Answering: in.conversion.Missing()})
		if len(in.conversion.Missing()) == len(own.Fields()) {
			a.Reason = message.ReasonSchema
			return in, nil
		}
		in.converted = own.NewFrame()
	}
	rated, err := there.WithPerTick(r.RateHz, r.PerTick)
	if err != nil {
		return nil, err
	}
	generic := prior.Generic()
	switch {
	case r.Prior != generic.Hash() || r.Codec != rpcdelta.Adaptive.String():
		a.Reason, a.Known = message.ReasonCodec, message.Codecs()
		return in, nil
	case r.Ring < 2 || r.Ring > rpcdelta.DefaultRing:
		a.Reason = message.ReasonInvalid
		return in, nil
	}
	in.dec, err = rpcdelta.NewDecoder(rated, rpcdelta.DecoderConfig{
		Codec: rpcdelta.Adaptive, RPC: int(r.RPC), PeerRing: r.Ring, Prior: generic, Reliable: r.Reliable,
	})
	in.deliver = t.deliver()
	return in, err
}

// call handles a payload with unreliable calls of the server. number is the packet number of its
// datagram. It ignores calls of RPCs that were refused, and calls that arrive before the request to
// bind.
func (l *link) call(b []byte, number uint64) error {
	n, err := rpcdelta.PeekRPC(b)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", message.ErrMalformed, err)
	case n >= len(l.calls) || l.calls[n].dec == nil:
		l.count(&l.stats.CallsDropped, 1)
		return nil
	case l.calls[n].reliable:
		return errUnbound
	}
	in := l.calls[n]
	if number+shortReach <= in.newest { // the short sequence number is ambiguous
		l.count(&l.stats.CallsDropped, 1)
		return nil
	}
	in.newest = max(in.newest, number)
	err = l.decode(in, b)
	if in.dec.AckDue() {
		l.own.Wake(l.start.Add(l.callsAcked + ackInterval))
	}
	if err != nil {
		l.count(&l.stats.CallsDropped, 1)
	}
	return nil
}

// shortReach is the number of sequence numbers that the short header of a payload distinguishes.
const shortReach = 64

var errUnbound = fmt.Errorf("%w: a frame of an RPC that is not bound", message.ErrMalformed)

// reliableCall handles a payload with a reliable call. Calls of a refused RPC are ignored, because
// the refusal may not have reached the server yet.
func (l *link) reliableCall(b []byte) error {
	n, err := rpcdelta.PeekRPC(b)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", message.ErrMalformed, err)
	case n >= len(l.calls) || !l.calls[n].reliable:
		return errUnbound
	case l.calls[n].dec == nil:
		return nil
	}
	if err := l.decode(l.calls[n], b); err != nil {
		return fmt.Errorf("%w: a frame of RPC %d: %w", message.ErrMalformed, n, err)
	}
	return nil
}

func (l *link) decode(in *incoming, b []byte) error {
	frames, err := in.dec.Decode(b)
	for i := range frames {
		if err := in.handle(&frames[i]); err != nil {
			return err
		}
		l.count(&l.stats.Calls, 1)
	}
	return err
}

// ackCalls sends acks of the server's calls, if their use justifies a datagram.
func (l *link) ackCalls(now time.Time) {
	due, pays := false, false
	// The bits of a datagram besides the acks.
	overhead := 8 * (endpoint.IPSize + endpoint.HeaderSize + l.own.Suite().Overhead() + 1)
	for _, in := range l.calls {
		if in.dec != nil && in.dec.AckDue() {
			due, pays = true, pays || in.dec.AckPays(overhead, 0)
		}
	}
	switch at := l.start.Add(l.callsAcked + ackInterval); {
	case !due:
		return
	case now.Before(at):
		l.own.Wake(at)
		return
	case !pays:
		l.own.Wake(now.Add(ackInterval))
		return
	}
	acks := []byte{byte(message.Acks)}
	for _, in := range l.calls {
		if in.dec != nil && in.dec.AckDue() {
			acks = in.dec.AppendAck(acks)
		}
	}
	if l.own.Send(acks) == nil { // otherwise the session has ended
		l.callsAcked = now.Sub(l.start)
	}
}
