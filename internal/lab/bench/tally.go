package bench

import (
	"errors"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// tally adds up what happens.
type tally struct {
	sent, messages                               int
	delivered, mismatches, undecodable           int
	lost, late                                   int // datagrams
	intra, deltas, ages                          int
	fullBits, payloadBits, headerBits, frameBits int
	acks, ackBytes                               int
}

// frame counts the frames that were sent in a message of so many bytes, which the codec's own header is part of.
func (t *tally) frame(s *scheme, info rpcdelta.Info, size int) {
	header := s.headerBits(info.HeaderBits)
	t.sent += 1 + info.Held
	t.messages++
	t.fullBits += info.FullBits
	t.payloadBits += info.PayloadBits
	t.headerBits += header
	t.frameBits += header + 8*size - info.HeaderBits
	if info.Kind == rpcdelta.Delta {
		t.deltas++
		t.ages += info.BaselineAge
	} else {
		t.intra++
	}
}

// ack counts an ack of so many bytes.
func (t *tally) ack(s *scheme, size int) {
	t.acks++
	t.ackBytes += s.ackBytes(size)
}

// dropped counts what became of a payload from which nothing was delivered.
func (t *tally) dropped(err error) {
	switch {
	case errors.Is(err, rpcdelta.ErrLate), errors.Is(err, rpcdelta.ErrDuplicate):
		t.late++
	case err != nil:
		t.undecodable++
	}
}

// delivery counts a frame, which is what was sent or not.
func (t *tally) delivery(right, counts bool) {
	if counts {
		t.delivered++
	}
	if !right {
		t.mismatches++
	}
}

// add adds what o counted.
func (t *tally) add(o *tally) {
	t.sent += o.sent
	t.messages += o.messages
	t.delivered += o.delivered
	t.mismatches += o.mismatches
	t.undecodable += o.undecodable
	t.lost += o.lost
	t.late += o.late
	t.intra += o.intra
	t.deltas += o.deltas
	t.ages += o.ages
	t.fullBits += o.fullBits
	t.payloadBits += o.payloadBits
	t.headerBits += o.headerBits
	t.frameBits += o.frameBits
	t.acks += o.acks
	t.ackBytes += o.ackBytes
}

func (t *tally) counts(cfg *Config, name string) Counts {
	around := cfg.around()
	return Counts{
		Name:            name,
		FramesSent:      t.sent,
		FramesDelivered: t.delivered,
		DeliveredRatio:  share(t.delivered, t.sent),
		FullBits:        share(t.fullBits, t.sent),
		PayloadBits:     share(t.payloadBits, t.sent),
		HeaderBits:      share(t.headerBits, t.sent),
		DatagramBits:    share(8*transport.HeaderSize*t.messages, t.sent),
		SealBits:        share(8*cfg.Suite.Overhead()*t.messages, t.sent),
		IPBits:          share(8*transport.IPSize*t.messages, t.sent),
		FullWireBits:    share(t.fullBits+8*around*t.sent, t.sent),
		WireBits:        share(t.frameBits+8*around*t.messages, t.sent),
		AckBits:         share(8*t.ackBytes, t.sent),
		AckWireBits:     share(8*(t.ackBytes+(messageType+around)*t.acks), t.sent),
		IntraFrames:     t.intra,
		Mismatches:      t.mismatches,
		Undecodable:     t.undecodable,
		Lost:            share(t.lost, t.messages),
		Late:            share(t.late, t.messages),
		BaselineAge:     share(t.ages, t.deltas),
	}
}
