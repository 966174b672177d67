package ds

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
)

// binding is an RPC that a player has bound. A player has at most one binding of each RPC, so it
// cannot multiply the limits of a binding. The shard's goroutine uses it. Other goroutines use the
// decoder under the lock of bindings, the goroutine of the handlers uses rejected and time, and
// processed is atomic.
type binding struct {
	of       *bindings
	rpc      *rpc
	version  *version
	sink     sink // sink of the RPC, a jitter buffer, a sequencer or a converter
	request  boundRequest
	number   int       // number of the RPC in headers
	ring     int       // size of the decoder's ring, in frames
	here     *rpcShard // RPC in the player's shard
	counts   *counts   // counts of here for the binding's channel
	dec      *rpcdelta.Decoder
	reliable bool
	frames   uint64  // maximum number of frames per datagram
	batch    int     // maximum number of new frames per datagram on a path without congestion
	hz       float64 // declared rate, in calls per second
	// frameSize is the maximum number of bytes of a frame with the client's fields.
	frameSize int
	// repairTime is the number of frames within which an ack must arrive for the client to repeat a
	// payload.
	repairTime int
	repairAge  uint64         // maximum age of a repeated payload, in frames; 0 if none is repeated
	newest     uint64         // packet number of the newest decoded payload
	undecoded  int            // payloads dropped since newest
	prior      *prior.Prior   // nil if the codec has none
	rate       ratelimit.Rate // rate limit of new frames
	limit      ratelimit.Bucket
	withheld   uint64        // frames missing since the last delivered one, including frames that the server dropped
	rejected   uint64        // frames rejected since the last accepted one; used only by the goroutine of the handlers
	time       *clientTime   // simulated time of the client; nil without a TimeCheck
	processed  atomic.Uint64 // sequence number after the newest frame for which the handler ran
}

// shortReach is the number of sequence numbers that the short header of a payload distinguishes.
const shortReach = 64

// ambiguous reports whether a datagram is so old that the sequence numbers in its payloads could be
// those of newer frames. The frames of the datagram count too: its first payload is older than its
// last one by these frames, and a repeated payload is older still.
func (b *binding) ambiguous(number uint64) bool {
	return !b.reliable && number < b.newest && (b.newest-number+1)*b.frames+b.repairAge > shortReach
}

// markRecovered marks the frames of the payload in a datagram that a missing datagram contained
// before. The other new frames of the payload no longer count as redundant.
func (b *binding) markRecovered(frames []rpcdelta.Delivery, number uint64) {
	copies := b.copies(frames, number)
	for i := range frames[:copies] {
		frames[i].Recovered = true
	}
	frames[len(frames)-1].Redundant += copies + 1 - len(frames)
}

// copies returns the minimum number of frames in a datagram's payload that missing datagrams also
// contained, if each of them had a frame of this RPC. They are the oldest ones. Without missing
// datagrams there are none, since they would have been delivered before.
func (b *binding) copies(frames []rpcdelta.Delivery, number uint64) int {
	n := len(frames)
	switch {
	case b.reliable || number < b.newest: // out of order
		return 0
	case frames[0].Late: // the payload was sent again
		return n
	case number == b.newest || n == 1:
		return 0
	}
	missing := b.undecoded
	if number > b.newest+1 {
		missing += b.of.conn.Missing(b.newest+1, number-1)
	}
	if missing == 0 {
		return 0
	}
	// Each missing datagram had at least one new frame, and this one at most batch.
	missed, batch := int(frames[0].Missed), b.batch
	switch all := frames[n-1].Redundant + 1; {
	case missed != 0:
		batch = int(b.frames) // loss may be a sign of congestion
	case all == n && all <= batch: // all frames may be new if no missing datagram had a frame of this RPC
		return 0
	}
	return max(n-batch, min(missing-missed, n-1), 0)
}

// process records that the handler has run for a frame, or for its tick.
func (b *binding) process(seq uint64) {
	if b.rpc.predicted {
		b.processed.Store(max(b.processed.Load(), seq+1))
	}
}

// reject counts a frame that is not handled as missed.
func (b *binding) reject(late bool, missed uint64) {
	if !late {
		b.rejected = missed + 1
	}
}

// repairMemory is the number of frames for which the server assumes, after a late frame, that the
// client repeats payloads, whatever round-trip time it expects.
const repairMemory = 256

// ackDelay returns the number of frames from the departure of a payload to the arrival of its ack.
func (b *binding) ackDelay() int {
	every := b.of.carriers.Interval()
	if every == 0 {
		every = b.of.cfg.ackInterval()
	}
	return int((b.of.conn.RTT()+every).Seconds()*b.hz) + 1
}

// repairs reports whether the client can repeat a lost payload by the deadline of its frames.
func (b *binding) repairs() bool { return b.repairTime > b.ackDelay() }

// keepsTime reports whether a call is to be delivered, and counts detections.
func (b *binding) keepsTime(p *Player, at time.Time, delta time.Duration) bool {
	c := b.rpc.time
	ahead, drop, detected := b.time.call(c, at, delta)
	if detected {
		b.counts.update(func(total *RPCStats) { total.TimeDetections++ })
		p.note(aheadEvent, fmt.Sprintf("%.64q: %v ahead", b.rpc.schema.RPC(), ahead), nil)
		if c.Detected != nil {
			c.Detected(p, b.rpc.schema.RPC(), ahead)
		}
	}
	return !drop
}

// boundRequest holds the values of the request of a binding, apart from its RPC and descriptions. A
// repeated request has the same values.
type boundRequest struct {
	number, ring, frames, batch, deadline int
	hz                                    float64
	reliable                              bool
	fingerprint, prior                    uint64
	codec                                 string
}

func requestOf(r *message.BindRequest) boundRequest {
	return boundRequest{
		number: int(r.RPC), ring: r.Ring, frames: r.Frames, batch: r.Batch, deadline: r.Deadline, hz: r.RateHz, reliable: r.Reliable,
		fingerprint: r.Fingerprint, prior: r.Prior, codec: r.Codec,
	}
}

// conflict explains why a request is refused because of a binding.
func (b *binding) conflict(asked *rpc, r *boundRequest) string {
	name := b.rpc.schema.RPC()
	switch {
	case b.rpc != asked:
		return fmt.Sprintf("number %d is that of %.64s", b.number, name)
	case b.number != r.number:
		return fmt.Sprintf("%.64s is bound already, as number %d: a session binds an RPC once", name, b.number)
	}
	return fmt.Sprintf("%.64s is bound already, with another rate, channel, schema or delay", name)
}

func priorHash(p *prior.Prior) uint64 {
	if p == nil {
		return 0
	}
	return p.Hash()
}

// decode decodes a payload, and measures some of them: see Server.profiling. The choice is random,
// as players send in turn.
func (b *binding) decode(profiling uint64, payload []byte) ([]rpcdelta.Delivery, error) {
	run, every := profiling>>32, uint32(profiling)
	if every == 0 || b.version.conversion != nil { // profiles have the server's fields only
		return b.dec.Decode(payload)
	}
	p := &b.here.profiler
	if p.left = min(p.left, 2*every); p.left > 1 {
		p.left--
		return b.dec.Decode(payload)
	}
	p.left = 1 + rand.Uint32N(2*every-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profile == nil || p.run != run {
		p.profile, p.run = rpcdelta.NewProfile(b.rpc.schema), run
	}
	b.dec.Measure(p.profile)
	defer b.dec.Measure(nil)
	return b.dec.Decode(payload)
}
