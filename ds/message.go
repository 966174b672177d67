package ds

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/transport"
)

// MaxMessage is the most bytes of a message.
const MaxMessage = control.MaxMessage

// ErrBacklog says that a message was not sent since the player has left too many
// unacknowledged: try again later.
var ErrBacklog = transport.ErrBacklog

// SendReliable sends a copy of b, at most [MaxMessage] bytes, to the player:
// client.Config.OnMessage gets it. Messages come in order and every one, while the
// session lives. It never waits: if too many are unacknowledged it is [ErrBacklog],
// about 250 messages or 290 KB, and after the session's end an error that wraps
// net.ErrClosed. The first use costs about 29 KB at either end.
func (p *Player) SendReliable(b []byte) error {
	if len(b) > MaxMessage {
		return fmt.Errorf("ds: a message of %d bytes, at most %d can be sent", len(b), MaxMessage)
	}
	if err := p.conn.SendReliable(control.AppendMessage(make([]byte, 0, 1+len(b)), b)); err != nil {
		return fmt.Errorf("ds: send to player %d: %w", p.ID(), err)
	}
	return nil
}

// receiveMessage takes a message of the game's own. Of these, too, none may be
// missing.
func (p *Player) receiveMessage(b []byte, a *arrival) {
	s := p.server
	f := s.cfg.OnMessage
	switch {
	case p.kicked.Load():
		p.discard(a.at, Kicked)
	case len(b) > MaxMessage:
		p.discard(a.at, Malformed)
		p.violate("a message is too long")
	case !p.sent.Take(a.since, control.DSMessages, control.MessageCost(len(b))):
		p.discard(a.at, RateLimited)
		p.end("too many messages")
	case f == nil:
		p.discard(a.at, UnknownRPC)
	case !s.cfg.Poll:
		s.guard(p, func() { f(p, b) })
	default:
		m := &message{player: p, b: bytes.Clone(b)}
		if !s.queue.pushFor(p, m, int(unsafe.Sizeof(*m))+len(b)) {
			p.discard(a.at, QueueFull)
			p.end("too many messages wait for the game")
		}
	}
}

// message waits for Poll.
type message struct {
	player *Player
	b      []byte
}

func (m *message) take() {}

func (m *message) run() {
	p := m.player
	if p.kicked.Load() {
		p.drop(Kicked)
		return
	}
	p.server.guard(p, func() { p.server.cfg.OnMessage(p, m.b) })
}
