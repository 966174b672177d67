package replication

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// encodings are the messages of a tick, each encoded once for all clients that have its baseline,
// and the newest messages without a baseline. Methods may be called from several goroutines, except
// begin.
type encodings struct {
	world     *World
	interval  uint64       // snapshots from one message without a baseline to the next
	encoders  sync.Pool    // of *snapshot.Encoder
	count     atomic.Int64 // encodings of the tick
	total     atomic.Uint64
	owed      atomic.Int64 // large keyframes for which the plan does not make up yet
	mu        sync.Mutex
	messages  map[snapshot.Baseline]*encoding
	keyframes [2]keyframe                  // against the initial set, and the empty one
	replaced  []*encoding                  // keyframes that may still be in use during the tick
	shared    map[snapshot.Baseline]uint64 // players of each encoding of the tick before
	free      []*encoding
	observer  Observer
}

// Observer is called before and after each encoding of a snapshot, perhaps by several goroutines.
type Observer interface {
	Encoding()
	Encoded(bytes int)
}

// encoding is a message: the tick, and the payload.
type encoding struct {
	once    sync.Once
	message []byte
	info    snapshot.Info
	number  uint64 // of the snapshot
	age     uint64 // ticks between the snapshot and its baseline
	players atomic.Uint64
	err     error
}

// keyframe is the newest message without a baseline.
type keyframe struct {
	*encoding
	at    uint64 // the snapshot
	large bool   // larger than a datagram
}

// keyframesPerSecond is the number of messages without a baseline that are encoded per second, if
// they are larger than a datagram. Clients that need one get the newest.
const keyframesPerSecond = 10

// begin forgets the messages of the tick before.
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

// take returns an encoding to fill.
func (e *encodings) take() *encoding {
	i := len(e.free)
	if i == 0 {
		return new(encoding)
	}
	m := e.free[i-1]
	e.free = e.free[:i-1]
	return m
}

// get returns the message of snapshot n, the newest, coded against a baseline. Without a baseline
// it may be that of a snapshot shortly before, or of a second if the client has not acked the one
// that it received last.
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

// share counts a player who gets a message coded against b, and returns the number of players who
// share it: that of the tick before, or so far if there was none.
func (e *encodings) share(m *encoding, b snapshot.Baseline) uint64 {
	return max(m.players.Add(1), e.shared[b])
}

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
