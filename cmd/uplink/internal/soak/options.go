package soak

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// Options says how long to soak, and what. Errors name the command's flags.
type Options struct {
	Players int
	For     time.Duration
	Phase   time.Duration     // how long each condition lasts
	Network transport.Network // nil means UDP
}

// The bounds of options.
const (
	maxPlayers = 2000
	// LeastPhase is what connections that were lost need to be there again.
	LeastPhase = 3 * time.Second
)

// Validate says which flag is wrong, and how.
func (o *Options) Validate() error {
	switch {
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d", o.Players, maxPlayers)
	case o.Phase < LeastPhase:
		return fmt.Errorf("--phase %v: want at least %v", o.Phase, LeastPhase)
	case o.For < o.least():
		return fmt.Errorf("--for %v: want at least %v, which is two rounds of %d phases", o.For, o.least(), len(conditions))
	}
	return nil
}

// least is the time of two rounds: what the second one holds is compared with what the first one held.
func (o *Options) least() time.Duration { return time.Duration(2*len(conditions)) * o.Phase }
