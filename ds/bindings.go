package ds

import (
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/transport"
)

// bindings holds the RPCs that one player has bound, and the acks of their frames. The lock guards
// the decoders while they decode or append an ack. It also guards changes of the bindings and
// buffers, which other goroutines than the shard's read.
type bindings struct {
	cfg    *Config
	conn   *endpoint.Conn
	counts *ackCounts

	sync.Mutex
	all      []*binding       // by number in headers; at most one binding of each RPC
	buffers  []jitterBuffer   // jitter buffers of the bindings
	sent     time.Time        // time of the last acks
	reported time.Time        // time of the last report on the jitter buffers
	carriers message.Carriers // messages of worlds that can carry acks
	buf      []byte           // scratch for acks and the message that carries them
}

// ackCounts counts the acks to a shard's players.
type ackCounts struct {
	mu    sync.Mutex
	total endpoint.Acks
}

func (c *ackCounts) add(st endpoint.Acks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Add(&st)
}

func (c *ackCounts) addTo(sum *endpoint.Acks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum.Add(&c.total)
}

// at returns the binding with a number in headers, or nil.
func (b *bindings) at(n int) *binding {
	if n < len(b.all) {
		return b.all[n]
	}
	return nil
}

// find returns the binding with a number or, if there is none, the binding of an RPC, or nil.
func (b *bindings) find(rpc *rpc, n int) *binding {
	if one := b.at(n); one != nil {
		return one
	}
	for _, one := range b.all {
		if one != nil && one.rpc == rpc {
			return one
		}
	}
	return nil
}

// add adds a binding, and its jitter buffer unless that is nil. The bindings must be locked.
func (b *bindings) add(one *binding, buffer jitterBuffer) {
	for len(b.all) <= one.number {
		b.all = append(b.all, nil)
	}
	b.all[one.number] = one
	if buffer != nil {
		b.buffers = append(b.buffers, buffer)
	}
}

// end drops all bindings.
func (b *bindings) end() {
	b.Lock()
	defer b.Unlock()
	b.all, b.buffers = nil, nil
}

// reportEvery is the interval of reports on jitter buffers.
const reportEvery = 250 * time.Millisecond

func (b *bindings) ackDue() bool {
	for _, one := range b.all {
		if one != nil && one.dec.AckDue() {
			return true
		}
	}
	return false
}

// carries reports whether a message of a world that can carry acks is expected soon.
func (b *bindings) carries(now time.Time) bool {
	_, ok := b.carriers.Until(now)
	return ok
}

// acksPay reports whether an ack is worth its own bits and the given number of additional bits.
func (b *bindings) acksPay(overhead int) bool {
	for _, one := range b.all {
		if one != nil && one.dec.AckPays(overhead, one.ackDelay()) {
			return true
		}
	}
	return false
}

// ackRoom returns the minimum limit of appendAcks, in bytes.
func (b *bindings) ackRoom() int {
	return 2 + message.BufferedSize*min(len(b.buffers), message.MaxBuffered) + seq.MaxAck
}

// appendAcks appends a message of acks, up to a limit of at least ackRoom: first a report on the
// jitter buffers, if that is due.
func (b *bindings) appendAcks(dst []byte, limit int, now time.Time) []byte {
	if len(b.buffers) == 0 || now.Sub(b.reported) < reportEvery-b.cfg.tick()/2 {
		dst = append(dst, byte(message.Acks))
	} else {
		b.reported = now
		all := b.buffers[:min(len(b.buffers), message.MaxBuffered)]
		dst = message.AppendSlack(dst, len(all))
		for _, buffer := range all {
			_, of := buffer.owner()
			st := buffer.stats()
			r := message.Buffered{RPC: uint8(of.number), Slack: st.Slack, Target: st.Target, Rate: st.Rate, Missing: uint16(st.Missing), Late: uint16(st.Late)}
			dst = r.Append(dst)
		}
	}
	for _, one := range b.all {
		if one != nil && one.dec.AckDue() && len(dst)+seq.MaxAck <= limit {
			dst = one.dec.AppendAck(dst)
		}
	}
	return dst
}

// withAcks returns a message of a world, preceded by the acks that are due if there is room for
// them and they are worth their bits. The bindings must be locked; the result is valid until they
// are unlocked.
func (b *bindings) withAcks(msg []byte, now time.Time) []byte {
	limit := min(1+255, transport.MaxPayload-1-len(msg)) // maximum size of the acks, with a byte for the type
	if limit < b.ackRoom() {
		return msg
	}
	b.carriers.Left(now, b.cfg.ackInterval())
	if !b.acksPay(0) {
		return msg
	}
	buf := b.appendAcks(append(b.buf[:0], 0), limit+1, now)
	kind := message.WithAcks
	if message.Type(buf[1]) == message.Slack {
		kind = message.WithSlack
	}
	n := len(buf)
	buf[0], buf[1] = byte(kind), byte(n-2)
	buf = append(buf, msg...)
	b.buf, b.sent = buf, now
	b.counts.add(endpoint.Acks{Piggybacked: 1, Bytes: uint64(n)})
	return buf
}

// downlink is a player's connection for the messages of worlds. It piggybacks acks on them, and
// queues them for the next flush of the listener.
type downlink struct {
	*endpoint.Conn
	server   *Server
	bindings *bindings
}

// Send sends a message of a world, with the acks that are due if there is room.
func (d downlink) Send(b []byte) error {
	d.bindings.Lock()
	defer d.bindings.Unlock()
	return d.Queue(d.bindings.withAcks(b, time.Now()))
}

// WorldSlowed adds an event and a log record.
func (d downlink) WorldSlowed(world string, share float64) {
	e := event{typ: worldRateNormalEvent, player: d.ID(), client: d.ClientID(), text: world}
	log := d.server.cfg.Logger
	if share == 1 {
		log.Info("the path of a player carries all messages of a world again", "world", world, "player", e.player, "client", e.client)
	} else {
		e.typ, e.text = worldRateSlowEvent, fmt.Sprintf("%s: %.0f %% of the messages", world, 100*share)
		log.Warn("the path of a player does not carry all messages of a world", "world", world, "player", e.player, "client", e.client, "share", share,
			"hint", "lower SendHz, send coarser fields, or divide the world into areas")
	}
	d.server.events.add(e)
}

// AppendProcessed appends the number of processed frames of each of the player's RPCs with
// [ForPrediction]. It appends nothing if the server has no such RPC.
func (d downlink) AppendProcessed(dst []byte) []byte {
	if !d.server.predicts.Load() {
		return dst
	}
	d.bindings.Lock()
	defer d.bindings.Unlock()
	at := len(dst)
	dst = replication.AppendProcessed(dst)
	for n, b := range d.bindings.all {
		if b != nil && b.rpc.predicted {
			dst = replication.AddProcessed(dst, at, uint8(n), b.processed.Load())
		}
	}
	return dst
}
