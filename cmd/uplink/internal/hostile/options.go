package hostile

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options configure a run. Errors name the command's flags.
type Options struct {
	Players int           // honest players beside the others
	Hostile int           // hostile clients, and as many honest ones in their place in the other phase
	For     time.Duration // time in which the server's CPU is measured, of each phase
	Kinds   []string      // names of kinds of hostile client; nil is all
}

// The bounds of Options, and of what the server may use for a hostile client.
const (
	maxPlayers = 200
	maxHostile = 200
	leastFor   = time.Second

	// MaxShare is the share of a core that one hostile client may cost more than an honest one that
	// sends as many datagrams.
	MaxShare = 0.02
	// MinKept is the share of frames that honest players must keep.
	MinKept = 0.999
)

// Validate returns an error that names the flag that is wrong.
func (o *Options) Validate() error {
	switch {
	case o.Players < 1 || o.Players > maxPlayers:
		return fmt.Errorf("--players %d: want 1 to %d with --hostile", o.Players, maxPlayers)
	case o.Hostile < 1 || o.Hostile > maxHostile:
		return fmt.Errorf("--hostile %d: want 1 to %d", o.Hostile, maxHostile)
	case o.For < leastFor:
		return fmt.Errorf("--for %v: want at least %v", o.For, leastFor)
	}
	for _, name := range o.Kinds {
		if !slices.Contains(Kinds(), name) {
			return fmt.Errorf("--kinds %s: want some of %s", name, strings.Join(Kinds(), ","))
		}
	}
	return nil
}

// chosen returns the kinds, in order.
func (o *Options) chosen() (all []*kind) {
	for i := range kinds {
		if o.Kinds == nil || slices.Contains(o.Kinds, kinds[i].name) {
			all = append(all, &kinds[i])
		}
	}
	return all
}
