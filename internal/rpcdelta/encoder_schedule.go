package rpcdelta

// schedule decides when held frames are sent. Time is counted in frames: a payload is sent in the
// tick of its newest frame.
type schedule struct {
	urgent   uint64 // newest urgent frame
	payloads uint8  // number of payloads planned to contain it, in consecutive ticks
}

// hurry requests that frame n is sent in its tick, and repeated in consecutive ticks until it is
// acked or the given number of payloads contain it. Frames between n and an earlier urgent frame
// with copies left share its payloads.
func (e *Encoder) hurry(n uint64, payloads int) {
	if e.hurries() && payloads == 1 {
		return // the payload of the earlier urgent frame contains n
	}
	e.schedule = schedule{n, uint8(payloads)}
	f := e.sent.Get(n)
	f.early = max(f.early, uint8(payloads))
}

// hurries reports whether the newest urgent frame, or a copy of it, must be sent in this tick.
func (e *Encoder) hurries() bool {
	s := &e.schedule
	if s.payloads == 0 || e.hasBase && e.base >= s.urgent {
		return false
	}
	f := e.sent.Get(s.urgent)
	return f != nil && f.payloads < s.payloads
}

// isLate reports whether this is the last tick from which all planned payloads of a frame can be
// sent by its deadline, one per tick.
func (e *Encoder) isLate() bool {
	if e.cfg.Deadline == 0 || e.redundancy.setting != RedundancyAuto {
		return false
	}
	newest := e.next - 1
	for q := range e.repeatable(newest) {
		f := e.sent.Get(q)
		left := e.maxAge - int(newest-q) // ticks left after this one
		if int(e.redundancy.limited(min(f.early, f.must))) > int(f.payloads)+left {
			return true
		}
	}
	return false
}

// countPayload records that payload n is sent with the given number of older frames. Frames that
// did not fit lose this planned copy.
func (e *Encoder) countPayload(n uint64, older int) {
	e.sent.Get(n).payloads++
	for q := range e.repeatable(n) {
		f := e.sent.Get(q)
		contained := n-q <= uint64(older)
		if !contained && f.payloads >= f.early || f.payloads == everyPayload {
			continue
		}
		if f.payloads++; contained && f.payloads > f.planned {
			e.redundancy.contained(int(f.payloads), int(f.payloads)-1)
		}
	}
}
