package soak

import (
	"errors"
	"fmt"
)

// Phase is what came of one, and of all before it where it says so.
type Phase struct {
	Number    int    `json:"phase"`
	Condition string `json:"condition"`
	Connected int    `json:"connected"`
	Players   int    `json:"players"`
	Frames    uint64 `json:"frames"`
	Missed    uint64 `json:"missed"`
	// Since the beginning:
	Verified       uint64 `json:"verified"`
	Mismatched     uint64 `json:"mismatched"`
	Desync         uint64 `json:"desync"`
	Reconnections  uint64 `json:"reconnections"`
	SocketsChanged uint64 `json:"sockets_changed"`
	Usage          Usage  `json:"usage"`
	settled        bool   // a condition in which all must be connected
}

func (r *run) result(n int, c *condition, before counts) Phase {
	now, bots := r.server.counts(), r.progress()
	good, bad := r.server.check.Counts()
	return Phase{
		Number: n + 1, Condition: c.name, Connected: bots.Connected, Players: r.options.Players,
		Frames: now.frames - before.frames, Missed: now.missed - min(now.missed, before.missed), // a late frame takes one back
		Verified: good, Mismatched: bad, Desync: now.desync,
		Reconnections: bots.Reconnections, SocketsChanged: bots.Rebinds,
		Usage: look(), settled: c.link.Loss == 0,
	}
}

// verdict is an error if something broke.
func (p Phase) verdict() error {
	switch {
	case p.Mismatched > 0:
		return fmt.Errorf("%d of %d frames are not what the bots played", p.Mismatched, p.Mismatched+p.Verified)
	case p.Desync > 0:
		return fmt.Errorf("%d frames referred to another baseline than the server has", p.Desync)
	case p.Frames == 0:
		return errors.New("no frame came in a whole phase")
	case p.settled && p.Connected < p.Players:
		return fmt.Errorf("%d of %d players have not come back", p.Players-p.Connected, p.Players)
	}
	return nil
}

// String gives the phase as a line.
func (p Phase) String() string {
	return fmt.Sprintf("%3d %-20s %d/%d players, %d frames, %d missed; in all %d verified, %d mismatched, %d reconnections, %d sockets changed; %v",
		p.Number, p.Condition, p.Connected, p.Players, p.Frames, p.Missed, p.Verified, p.Mismatched, p.Reconnections, p.SocketsChanged, p.Usage)
}
