package rpcdelta

// schedule decides when held frames are sent. Time is counted in frames: a payload is sent in the
// tick of its newest frame.
type schedule struct {
	urgent   uint64 // newest urgent frame
	payloads uint8  // payloads that are to contain it, each in the next tick
}

// hurry requests that frame n leaves in its tick, and that payloads in the next ticks contain it
// until it is acked or that many did. Frames between it and an earlier one that is not finished
// share its payloads.
func (e *Encoder) hurry(n uint64, payloads int) {
	if e.hurries() && payloads == 1 {
		return // the payload of the earlier one contains it
	}
	e.schedule = schedule{n, uint8(payloads)}
	f := e.sent.Get(n)
	f.early = max(f.early, uint8(payloads))
}

// hurries reports whether the newest urgent frame has to leave in this tick, for the first time or
// again.
func (e *Encoder) hurries() bool {
	s := &e.schedule
	if s.payloads == 0 || e.hasBase && e.base >= s.urgent {
		return false
	}
	f := e.sent.Get(s.urgent)
	return f != nil && f.payloads < s.payloads
}

// isLate reports whether this is the last tick in which all planned payloads of a frame can still
// leave by its deadline, one in each tick.
func (e *Encoder) isLate() bool {
	if e.cfg.Deadline == 0 || e.redundancy.setting != RedundancyAuto {
		return false
	}
	newest := e.next - 1
	for q := range e.repeatable(newest) {
		f := e.sent.Get(q)
		left := e.maxAge - int(newest-q) // ticks after this one
		if int(e.redundancy.limited(min(f.early, f.must))) > int(f.payloads)+left {
			return true
		}
	}
	return false
}

// countPayload records that payload n is sent, with the given number of older frames. Frames that
// were to be repeated but did not fit do not get another chance.
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
