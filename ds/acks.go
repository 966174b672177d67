package ds

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/transport"
)

// reportEvery is the interval of reports on jitter buffers.
const reportEvery = 250 * time.Millisecond

// noteAck lists the player for the next acks if a binding has some to send.
func (p *Player) noteAck(b *binding) {
	if p.due {
		return
	}
	p.acks.Lock()
	p.due = b.dec.AckDue()
	p.acks.Unlock()
	if p.due {
		p.shard.due = append(p.shard.due, p)
	}
}

func (p *Player) ackDue() bool {
	for _, b := range p.bindings {
		if b != nil && b.dec.AckDue() {
			return true
		}
	}
	return false
}

// carries reports whether another message of a world will soon leave, which can carry acks.
func (p *Player) carries(now time.Time) bool {
	_, ok := p.acks.carriers.Until(now)
	return ok
}

// acksPay reports whether an ack of the player is worth its bits and the given number of bits more.
func (p *Player) acksPay(overhead int) bool {
	for _, b := range p.bindings {
		if b != nil && b.dec.AckPays(overhead, b.ackDelay()) {
			return true
		}
	}
	return false
}

// ackRoom returns the minimum limit of appendAcks, in bytes.
func (p *Player) ackRoom() int {
	return 2 + message.BufferedSize*min(len(p.buffers), message.MaxBuffered) + seq.MaxAck
}

// appendAcks appends a message of acks, up to a limit of at least ackRoom: first a report on the
// player's jitter buffers, if that is due.
func (p *Player) appendAcks(dst []byte, limit int, now time.Time) []byte {
	if len(p.buffers) == 0 || now.Sub(p.acks.reported) < reportEvery-p.server.cfg.tick()/2 {
		dst = append(dst, byte(message.Acks))
	} else {
		p.acks.reported = now
		all := p.buffers[:min(len(p.buffers), message.MaxBuffered)]
		dst = message.AppendSlack(dst, len(all))
		for _, b := range all {
			_, of := b.owner()
			st := b.stats()
			r := message.Buffered{RPC: uint8(of.number), Slack: st.Slack, Target: st.Target, Rate: st.Rate, Missing: uint16(st.Missing), Late: uint16(st.Late)}
			dst = r.Append(dst)
		}
	}
	for _, b := range p.bindings {
		if b != nil && b.dec.AckDue() && len(dst)+seq.MaxAck <= limit {
			dst = b.dec.AppendAck(dst)
		}
	}
	return dst
}

// downlink is a player's connection for the messages of worlds. It piggybacks acks on them, and
// leaves them to the next flush of the listener.
type downlink struct {
	*endpoint.Conn
	p *Player
}

// Send sends a message of a world, with the acks that are due if there is room.
func (d downlink) Send(b []byte) error {
	d.p.acks.Lock()
	defer d.p.acks.Unlock()
	return d.Queue(d.p.withAcks(b, time.Now()))
}

// AppendProcessed appends which frames of the player's RPCs with [ForPrediction] were processed. It
// appends nothing if the server has no such RPC.
func (d downlink) AppendProcessed(dst []byte) []byte {
	if !d.p.server.predicts.Load() {
		return dst
	}
	d.p.acks.Lock()
	defer d.p.acks.Unlock()
	at := len(dst)
	dst = replication.AppendProcessed(dst)
	for n, b := range d.p.bindings {
		if b != nil && b.rpc.predicted {
			dst = replication.AddProcessed(dst, at, uint8(n), b.processed.Load())
		}
	}
	return dst
}

// withAcks returns a message of a world with the acks in front of it that are due, if there is room
// and they are worth their bits. The player's acks must be locked; the result is valid meanwhile.
func (p *Player) withAcks(b []byte, now time.Time) []byte {
	limit := min(1+255, transport.MaxPayload-1-len(b)) // of the acks, with a byte for the type
	if limit < p.ackRoom() {
		return b
	}
	p.acks.carriers.Left(now, p.server.cfg.ackInterval())
	if !p.acksPay(0) {
		return b
	}
	buf := p.appendAcks(append(p.acks.buf[:0], 0), limit+1, now)
	kind := message.WithAcks
	if message.Type(buf[1]) == message.Slack {
		kind = message.WithSlack
	}
	n := len(buf)
	buf[0], buf[1] = byte(kind), byte(n-2)
	buf = append(buf, b...)
	p.acks.buf, p.acks.sent = buf, now
	h := p.shard
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks.Piggybacked++
	h.acks.Bytes += uint64(n)
	return buf
}
