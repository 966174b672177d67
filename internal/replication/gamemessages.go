package replication

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/message"
)

// MaxGameMessage is the maximum size of a message of the game that belongs to a tick of a world, in
// bytes.
const MaxGameMessage = message.MaxMessage

// maxHeld bounds the messages of a world that a client holds until their tick, in bytes. Above it
// the oldest are delivered early.
const maxHeld = 256 << 10

// gameMessage is a message of the game that counts from a tick on.
type gameMessage struct {
	tick uint64
	data []byte
}

// GameMessages are messages of the game that count from ticks on, in the order in which they were
// sent. The zero value is ready.
type GameMessages struct {
	held []gameMessage
	size int // of the held ones, in bytes
	due  []gameMessage
}

var errGameMessage = errors.New("a message of the game without a tick, or too large")

// parse adds a message of the reliable channel, without its type and number.
func (m *GameMessages) parse(b []byte) error {
	tick, n := binary.Uvarint(b)
	if n <= 0 || tick > MaxTick || len(b)-n > MaxGameMessage {
		return fmt.Errorf("%w: %w", message.ErrMalformed, errGameMessage)
	}
	m.Add(tick, append([]byte(nil), b[n:]...))
	return nil
}

// Add adds a message. Those that exceed the bound of the memory become due.
func (m *GameMessages) Add(tick uint64, message []byte) {
	m.held = append(m.held, gameMessage{tick, message})
	m.size += len(message) + gameMessageOverhead
	for m.size > maxHeld {
		m.pop()
	}
}

// gameMessageOverhead is the memory of a held message besides its bytes.
const gameMessageOverhead = 64

func (m *GameMessages) pop() {
	m.due = append(m.due, m.held[0])
	m.size -= len(m.held[0].data) + gameMessageOverhead
	m.held = m.held[1:]
}

// Reach makes the messages due that count from a tick or an earlier one. None overtakes another.
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
