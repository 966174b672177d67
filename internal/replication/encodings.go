package replication

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// encodings contains the messages of the newest tick, each encoded once for all clients that have
// its baseline. It also contains the newest keyframes: messages without a baseline. The methods are
// safe for concurrent use, except begin.
type encodings struct {
	world     *World
	interval  uint64        // minimum number of snapshots between two large keyframes
	encoders  sync.Pool     // pool of *snapshot.Encoder
	count     atomic.Int64  // number of encodings of the newest tick
	total     atomic.Uint64 // number of all encodings
	owed      atomic.Int64  // number of large keyframes not yet added to plan.debt
	mu        sync.Mutex
	messages  map[snapshot.Baseline]*encoding // messages of the newest tick, by baseline
	keyframes [2]keyframe                     // coded against the initial set, and against the empty set
	replaced  []*encoding                     // older keyframes, which may still be in use during the tick
	// Players per encoding in the previous tick, by baseline.
	shared   map[snapshot.Baseline]uint64
	free     []*encoding // unused encodings
	observer Observer
}

// Observer is called before and after each encoding of a snapshot, perhaps by several goroutines.
type Observer interface {
	Encoding()
	Encoded(bytes int)
}

// encoding is an encoded message, which consists of the tick and the payload.
type encoding struct {
	once    sync.Once
	message []byte
	info    snapshot.Info
	number  uint64        // number of the snapshot
	age     uint64        // number of ticks between the snapshot and its baseline
	players atomic.Uint64 // number of players that receive the message
	err     error
}

// keyframe is the newest message without a baseline.
type keyframe struct {
	*encoding
	at    uint64 // number of the snapshot
	large bool   // larger than a datagram
}

// keyframesPerSecond is the maximum number of large keyframes that are encoded per second. A
// keyframe is large if it exceeds a datagram. Clients that need a keyframe in between receive the
// newest one.
const keyframesPerSecond = 10

// begin removes the messages of the previous tick and stores their numbers of players in shared.
func (e *encodings) begin() {
	e.count.Store(0)
	clear(e.shared)
	for b, m := range e.messages {
		e.shared[b] = m.players.Load()
		e.recycle(m)
		delete(e.messages, b)
	}
	for _, m := range e.replaced {
		e.recycle(m)
	}
	e.replaced = e.replaced[:0]
}

func (e *encodings) recycle(m *encoding) {
	*m = encoding{message: m.message[:0]}
	e.free = append(e.free, m)
}

// take returns an unused encoding.
func (e *encodings) take() *encoding {
	i := len(e.free)
	if i == 0 {
		return new(encoding)
	}
	m := e.free[i-1]
	e.free = e.free[:i-1]
	return m
}

// get returns the message of snapshot n, the newest, coded against baseline b. Without a baseline,
// get may return a keyframe of an earlier snapshot. Large keyframes are reused for 100 ms. If again
// is set, keyframes of any size are reused for 1 s. It is set for clients that often lose their
// baselines or do not ack keyframes.
func (e *encodings) get(n uint64, b snapshot.Baseline, again bool) *encoding {
	m := e.find(n, b, again)
	m.once.Do(func() {
		if o := e.observer; o != nil {
			o.Encoding()
			defer func() { o.Encoded(m.info.Bytes) }()
		}
		enc, _ := e.encoders.Get().(*snapshot.Encoder)
		if enc == nil {
			enc = new(snapshot.Encoder)
		}
		m.number = n
		e.count.Add(1)
		e.total.Add(1)
		m.message = e.world.ticks.Append(m.message[:0], uint16(n), b.Distance)
		m.message, m.info, m.err = enc.Append(m.message, e.world.sets, b, maxCoded-binary.MaxVarintLen64)
		m.age = e.world.ticks.age(uint16(n), b.Distance)
		e.encoders.Put(enc)
		if b.Distance == 0 {
			large := len(m.message) > transport.MaxPayload
			if large {
				e.owed.Add(1)
			}
			e.mu.Lock()
			e.keyframe(b).large = large
			e.mu.Unlock()
		}
	})
	return m
}

// share counts a player that receives message m, coded against b. It returns the number of players
// that share the encoding: the greater of the number in the previous tick and the number so far.
func (e *encodings) share(m *encoding, b snapshot.Baseline) uint64 {
	return max(m.players.Add(1), e.shared[b])
}

// find returns the encoding for get, which may not be encoded yet.
func (e *encodings) find(n uint64, b snapshot.Baseline, again bool) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.Distance == 0 {
		k := e.keyframe(b)
		interval := e.interval
		switch {
		case again:
			interval *= keyframesPerSecond
		case !k.large:
			interval = 1
		}
		switch {
		case k.encoding == nil:
			k.encoding, k.at = e.take(), n
		case k.at+interval <= n:
			e.replaced = append(e.replaced, k.encoding)
			k.encoding, k.at = e.take(), n
		}
		return k.encoding
	}
	m := e.messages[b]
	if m == nil {
		m = e.take()
		e.messages[b] = m
	}
	return m
}

func (e *encodings) keyframe(b snapshot.Baseline) *keyframe {
	if b.Empty {
		return &e.keyframes[1]
	}
	return &e.keyframes[0]
}
