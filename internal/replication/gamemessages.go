package replication

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/message"
)

// MaxGameMessage is the maximum size of a game message in bytes. A game message is a message of the
// game that takes effect at a tick of a world.
const MaxGameMessage = message.MaxMessage

// maxHeld is the maximum size of the game messages that a client holds until their ticks, in bytes.
// Above it, the oldest messages are delivered early.
const maxHeld = 256 << 10

// gameMessage is a game message and the tick at which it takes effect.
type gameMessage struct {
	tick uint64
	data []byte
}

// GameMessages holds game messages until their ticks, in the order in which they were sent. The
// zero value is ready.
type GameMessages struct {
	held []gameMessage // messages that are not due yet
	size int           // size of held in bytes, with gameMessageOverhead for each message
	due  []gameMessage
}

var errGameMessage = errors.New("a message of the game without a tick, or too large")

// parse adds a message of the reliable channel, without its message type and stream number.
func (m *GameMessages) parse(b []byte) error {
	tick, n := binary.Uvarint(b)
	if n <= 0 || tick > MaxTick || len(b)-n > MaxGameMessage {
		return fmt.Errorf("%w: %w", message.ErrMalformed, errGameMessage)
	}
	m.Add(tick, append([]byte(nil), b[n:]...))
	return nil
}

// Add adds a message. If the held messages exceed maxHeld, the oldest become due.
func (m *GameMessages) Add(tick uint64, message []byte) {
	m.held = append(m.held, gameMessage{tick, message})
	m.size += len(message) + gameMessageOverhead
	for m.size > maxHeld {
		m.pop()
	}
}

// gameMessageOverhead is the estimated memory of a held message in addition to its bytes, in bytes.
const gameMessageOverhead = 64

func (m *GameMessages) pop() {
	m.due = append(m.due, m.held[0])
	m.size -= len(m.held[0].data) + gameMessageOverhead
	m.held = m.held[1:]
}

// Reach makes the messages of a tick and of earlier ticks due. The order is preserved: a message
// waits if an earlier message is not due.
func (m *GameMessages) Reach(tick uint64) {
	for len(m.held) > 0 && m.held[0].tick <= tick {
		m.pop()
	}
}

// Take returns the next due message and removes it. It reports false if there is none.
func (m *GameMessages) Take() (tick uint64, message []byte, ok bool) {
	if len(m.due) == 0 {
		return 0, nil, false
	}
	next := m.due[0]
	m.due = m.due[1:]
	return next.tick, next.data, true
}
