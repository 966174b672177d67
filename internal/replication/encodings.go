package replication

import (
	"encoding/binary"
	"sync"

	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport"
)

// encodings are the messages of a tick, each encoded once for all clients that have its baseline,
// and the newest messages without a baseline. Methods may be called from several goroutines, except
// begin.
type encodings struct {
	world     *World
	interval  uint64    // snapshots from one message without a baseline to the next
	encoders  sync.Pool // of *snapshot.Encoder
	mu        sync.Mutex
	messages  map[snapshot.Baseline]*encoding
	keyframes [2]encoding // against the initial set, and the empty one
	free      []*encoding
}

// encoding is a message: the tick, and the payload.
type encoding struct {
	once    sync.Once
	message []byte
	info    snapshot.Info
	number  uint64 // of the snapshot
	age     uint64 // ticks between the snapshot and its baseline
	err     error
}

// keyframesPerSecond is the number of messages without a baseline that are encoded per second, if
// they are larger than a datagram. Clients that need one get the newest.
const keyframesPerSecond = 10

// begin forgets the messages of the tick before.
func (e *encodings) begin() {
	for b, m := range e.messages {
		*m = encoding{message: m.message[:0]}
		e.free = append(e.free, m)
		delete(e.messages, b)
	}
}

// get returns the message of snapshot n, the newest, coded against a baseline. Without a baseline
// it may be that of a snapshot shortly before.
func (e *encodings) get(n uint64, b snapshot.Baseline) *encoding {
	m := e.find(n, b)
	m.once.Do(func() {
		enc, _ := e.encoders.Get().(*snapshot.Encoder)
		if enc == nil {
			enc = new(snapshot.Encoder)
		}
		m.number = n
		m.message = e.world.ticks.Append(m.message[:0], uint16(n), b.Distance)
		m.message, m.info, m.err = enc.Append(m.message, e.world.sets, b, MaxMessage-1-binary.MaxVarintLen64)
		m.age = e.world.ticks.age(uint16(n), b.Distance)
		e.encoders.Put(enc)
	})
	return m
}

func (e *encodings) find(n uint64, b snapshot.Baseline) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.Distance == 0 {
		k := &e.keyframes[0]
		if b.Empty {
			k = &e.keyframes[1]
		}
		if k.number+e.interval <= n || k.number < n && len(k.message) <= transport.MaxPayload {
			*k = encoding{message: k.message[:0], number: n}
		}
		return k
	}
	m := e.messages[b]
	if m == nil {
		if i := len(e.free); i > 0 {
			m, e.free = e.free[i-1], e.free[:i-1]
		} else {
			m = new(encoding)
		}
		e.messages[b] = m
	}
	return m
}
