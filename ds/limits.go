package ds

import (
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// limits holds the rate limits of one player. Only the shard's goroutine uses it.
type limits struct {
	hz           float64          // sum of the declared rates of the bindings, in calls per second
	rate         ratelimit.Rate   // rate limit of messages on the unreliable channel
	messages     ratelimit.Bucket // messages on the unreliable channel
	decoding     ratelimit.Rate   // rate limit of the bytes of decoded frames on the unreliable channel
	decoded      ratelimit.Bucket // bytes of decoded frames
	binds        ratelimit.Bucket // requests to bind
	waitingBinds int              // sum of the costs of requests that wait for a tick, see [bindCost]
	replies      ratelimit.Bucket // replies to offers, and answers to requests to bind
	sent         ratelimit.Bucket // reliable messages of the game
}

// A player may call each RPC Config.Limits.RateSlack times as often as it declared, with bursts of
// two seconds at that rate. The network may delay frames and deliver them all at once, which must
// not count against the player. Three limits apply. Payloads are counted before they are decoded.
// New frames are counted after decoding, because only the decoder can distinguish them. The bytes
// of all decoded frames are counted, including redundant frames, because decoding takes the
// server's time; while earlier payloads exceed this limit, no payload is decoded. This limit
// depends on the server's fields only, not on the client's.
const (
	// meanFrames is the number of frames that the payloads of the permitted rate may have on
	// average. A client that calls as often as it declared may have all MaxFrames in each.
	meanFrames = 10
	// burstSeconds is the size of bursts, in seconds at the permitted rate.
	burstSeconds = 2
	// controlHz is the permitted rate of replies to offers and answers to requests to bind, and of
	// datagrams besides frames and acks.
	controlHz = 50
	// bindHz is the permitted rate of requests to bind, on both channels together. A request counts
	// once more per bindUnit bytes, because descriptions of fields cost the server more. A client
	// repeats a request at most ten times a second until it is answered. If it binds all its RPCs
	// at once, some of the requests may have to be repeated. The same holds for a request that
	// would wait for a tick while the waiting requests of the player exceed a burst.
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

// grant raises the limits for a binding with the declared rate hz. frame is the maximum size of a
// frame of the RPC with the server's fields, in bytes.
func (l *limits) grant(cfg *Config, hz float64, frame int) {
	l.hz += hz
	l.rate = cfg.rate(controlHz + l.hz)
	permitted := cfg.rate(hz)
	l.decoding.PerSecond += max(rpcdelta.MaxFrames*hz, meanFrames*permitted.PerSecond) * float64(frame)
	l.decoding.Burst += rpcdelta.MaxFrames * (permitted.Burst + spareFrames) * float64(frame)
}
