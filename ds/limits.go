package ds

import (
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// limits are the rates at which one player may send. They belong to the shard's goroutine.
type limits struct {
	hz           float64          // sum of the bindings' rates
	rate         ratelimit.Rate   // of messages on the unreliable channel
	messages     ratelimit.Bucket // likewise
	decoding     ratelimit.Rate   // of the bytes of decoded frames on the unreliable channel
	decoded      ratelimit.Bucket // bytes of decoded frames
	binds        ratelimit.Bucket // requests to bind
	waitingBinds int              // costs of those that wait for a tick, see [bindCost]
	replies      ratelimit.Bucket // replies to offers, and answers to requests to bind
	sent         ratelimit.Bucket // reliable messages of the game
}

// A player may call each RPC Config.Limits.RateSlack times as often as it declared, with bursts of
// two seconds of that: frames that the network held back and delivers all at once must not count
// against the player. Three things are limited. Payloads are counted before they are decoded. New
// frames are counted afterwards, since only then it is known which they are. And all decoded frames
// are counted, redundant ones included, in bytes of frames, since they take the server's time: a
// payload is not decoded while those before it were too many. That limit follows from the frames of
// the server, whatever the fields of the client are.
const (
	// meanFrames is the number of frames that the payloads of the permitted rate may have on
	// average. A client that calls as often as it declared may have all MaxFrames in each.
	meanFrames = 10
	// burstSeconds is the size of bursts, in seconds at the permitted rate.
	burstSeconds = 2
	// controlHz is the permitted rate of replies to offers and answers to requests to bind, and of
	// datagrams besides frames and acks.
	controlHz = 50
	// bindHz is the permitted rate of requests to bind, on both channels together, where one counts
	// once more per bindUnit bytes, since descriptions of fields cost the server more. A client
	// repeats a request at most ten times a second until it is answered; if it binds all its RPCs
	// at once, some of the requests may have to be repeated. So is one that would wait for a tick
	// besides others of the player that are together more than a burst.
	bindHz   = 50
	bindUnit = 256
	// spareBinds is added to bursts of requests to bind, which are four for each RPC.
	spareBinds = 16
	// callAckHz is the rate of a client's acks of one RPC that the server calls.
	callAckHz = 10
	// spareFrames is added to bursts of frames, for RPCs with a very low declared rate.
	spareFrames = rpcdelta.MaxHeld
	// spareReliable is added to bursts on the reliable channel: the frames that can wait in it
	// while the network is interrupted.
	spareReliable = 512
)

// grant adds to the limits for a binding with a declared rate, of an RPC whose frames have at most
// that many bytes with the server's fields.
func (l *limits) grant(cfg *Config, hz float64, frame int) {
	l.hz += hz
	l.rate = cfg.rate(controlHz + l.hz)
	permitted := cfg.rate(hz)
	l.decoding.PerSecond += max(rpcdelta.MaxFrames*hz, meanFrames*permitted.PerSecond) * float64(frame)
	l.decoding.Burst += rpcdelta.MaxFrames * (permitted.Burst + spareFrames) * float64(frame)
}
