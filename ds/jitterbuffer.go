package ds

import (
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/schema"
)

// JitterBuffer says how a player's frames wait for their time. Zero fields mean the
// defaults.
//
// A frame's time is its number: each [Server.Poll] releases the next one of each
// player, in order, whenever they came, so that the game gets the calls as evenly as
// the player made them. A frame that has not come is missed: the next one says so
// (Frame.Missed), and with Repeat the handler gets the last one in its stead. A frame
// that comes after its tick is dropped as overdue, or with Config.DeliverLate
// delivered, marked, at the next Poll.
//
// The server tells the client how early its frames come and how early they should,
// and the client's clock follows if the game has it run as client.Stream.Pace says. A
// client that does not follow gets its release times set anew when they no longer suit.
// docs/jitter.md has what that gives.
//
// What a buffer holds does not count for Config.QueueBytes: it is bounded by itself, to
// the frames of about twice MaxDepth. Bindings of less than one call a second are refused.
type JitterBuffer struct {
	// TickHz is how often a second the game polls, 1 to 1000. At 0, the default, each
	// Poll releases one frame of each RPC and player, so that it should be called as
	// often as clients declare to call; otherwise as many as come in a tick at the
	// declared rate, on average. A game that missed ticks polls once for each.
	TickHz float64
	// Depth fixes how early frames are to come before they are released, on average, up
	// to 2 s. At 0, the default, it is learned from how unevenly they come, within
	// MinDepth, by default a quarter of the time between two calls, and MaxDepth, by
	// default 250 ms or four times that time.
	Depth, MinDepth, MaxDepth time.Duration
	// Repeat is for how many missing frames in a row the handler is called with the last
	// frame again, Frame.Repeated set; 0, the default, for none. Validate is not asked
	// again, and what it refused is not repeated.
	Repeat int
}

var (
	errOverdue = errors.New("ds: the frame's tick is over")
	errSkipped = errors.New("ds: the frame has no room in the jitter buffer")
)

// maxDepth bounds depths.
const maxDepth = 2 * time.Second

func (c *Config) checkJitterBuffer(j *JitterBuffer) error {
	if j == nil {
		return nil
	}
	switch {
	case !c.Poll:
		return errors.New("frames are released in Poll: set Config.Poll")
	case j.TickHz != 0 && !(j.TickHz >= 1 && j.TickHz <= 1000):
		return fmt.Errorf("TickHz is %v, want 1 to 1000", j.TickHz)
	case j.Repeat < 0:
		return fmt.Errorf("its Repeat is %d, want 0 or more", j.Repeat)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Depth", j.Depth}, {"MinDepth", j.MinDepth}, {"MaxDepth", j.MaxDepth}} {
		if d.value < 0 || d.value > maxDepth {
			return fmt.Errorf("%s is %v, want 0 to %v", d.field, d.value, maxDepth)
		}
	}
	if j.MaxDepth != 0 && j.MinDepth > j.MaxDepth {
		return fmt.Errorf("MinDepth is %v, want at most MaxDepth, %v", j.MinDepth, j.MaxDepth)
	}
	return nil
}

// SetJitterBuffer says for one RPC, which [Handle] or [HandleSchema] was called for,
// what Config.JitterBuffer says for all: how its frames wait, or with nil that they do
// not. Call it before Serve.
func (s *Server) SetJitterBuffer(rpc string, j *JitterBuffer) error {
	r, _ := s.lookup(rpc)
	if r == nil {
		return fmt.Errorf("ds: jitter buffer of %s: it is not handled; call Handle first", rpc)
	}
	if err := s.cfg.checkJitterBuffer(j); err != nil {
		return fmt.Errorf("ds: jitter buffer of %s: %w", rpc, err)
	}
	r.buffer = j
	return nil
}

// newBuffer makes the buffer of a binding, if it has one.
func (s *Server) newBuffer(p *Player, b *binding, hz float64) (buffered, error) {
	if b.rpc.buffer == nil || b.reliable {
		return nil, nil //nolint:nilnil // none is wanted
	}
	if hz == 0 {
		hz = schema.DefaultRate
	}
	return b.rpc.newBuffer(p, b, b.rpc.buffer, hz)
}
