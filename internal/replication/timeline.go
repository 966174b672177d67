package replication

import (
	"fmt"
	"sync"

	"github.com/uplink-rpc/uplink/snapshot"
)

// timeline holds the most recent ticks of a world, from which the senders of its streams encode.
// Begin, Commit and senders are used by one goroutine at a time.
type timeline struct {
	name   string
	schema *snapshot.Schema
	sets   *snapshot.World
	open   *snapshot.Set // being filled, or nil
	newest *snapshot.Set
	ticks  Ticks
	begun  uint64 // number of ticks
	last   uint64 // the newest tick

	// mu is held to write what Begin changes in sets, and to read it while Begin may be called: by
	// acks.
	mu sync.RWMutex
}

// Name returns the name of the world.
func (t *timeline) Name() string { return t.name }

// Begin begins a tick, which must be higher than those before it, and at most MaxTick.
func (t *timeline) Begin(tick uint64) error {
	if t.begun > 0 && tick <= t.last || tick > MaxTick {
		return fmt.Errorf("ds: world %s: tick %d after %d, want ascending ones up to %d", t.name, tick, t.last, uint64(MaxTick))
	}
	t.mu.Lock()
	t.open = t.sets.Begin()
	t.mu.Unlock()
	t.ticks.Set(uint16(t.begun), tick)
	t.begun++
	t.last = tick
	return nil
}

// Open returns the set of the tick that Begin began, or nil after Commit.
func (t *timeline) Open() *snapshot.Set { return t.open }

// Commit ends the tick.
func (t *timeline) Commit() {
	if t.open != nil {
		t.newest, t.open = t.open, nil
	}
}
