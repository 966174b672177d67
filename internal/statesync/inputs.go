package statesync

import (
	"fmt"
	"math"
	"slices"
)

// Input contains the input of a player for one tick, in the game's own encoding.
type Input struct {
	Player uint8
	Data   []byte // at most 255 bytes
}

// TickInputs are all players' inputs of one tick.
type TickInputs struct {
	Tick int64
	// Missing reports that the DS had no inputs for the tick. A tick without any player's input is
	// not missing.
	Missing bool
	Inputs  []Input // by ascending player
}

// inputLog stores the inputs of the last ring ticks. The inputs of a tick are flat: number, length
// and data of each player.
type inputLog struct {
	slots [ring]tickSlot
	next  int64 // newest tick + 1
	any   bool  // at least one tick is stored
}

type tickSlot struct {
	tick  int64
	known bool
	acked bool
	flat  []byte
}

func (l *inputLog) clear() {
	l.any = false
	for i := range l.slots {
		l.slots[i].tick = math.MinInt64
	}
}

func (l *inputLog) slot(tick int64) *tickSlot { return &l.slots[uint64(tick)%ring] }

// add adds the inputs of a tick. Omitted ticks are missing.
func (l *inputLog) add(tick int64, inputs []Input) error {
	if !validTick(tick) || l.any && tick < l.next {
		return fmt.Errorf("%w: inputs of tick %d, want %d or later", ErrTick, tick, l.next)
	}
	size := 0
	for i, in := range inputs {
		switch {
		case i > 0 && in.Player <= inputs[i-1].Player:
			return fmt.Errorf("statesync: inputs of tick %d: player %d after player %d, want ascending players", tick, in.Player, inputs[i-1].Player)
		case len(in.Data) > 255:
			return fmt.Errorf("statesync: inputs of tick %d: player %d has %d bytes, want at most 255", tick, in.Player, len(in.Data))
		}
		size += 2 + len(in.Data)
	}
	if size > maxTickBytes {
		return fmt.Errorf("statesync: inputs of tick %d take %d bytes, want at most %d", tick, size, maxTickBytes)
	}
	s := l.open(tick)
	s.known = true
	for _, in := range inputs {
		s.flat = append(append(s.flat, in.Player, byte(len(in.Data))), in.Data...)
	}
	return nil
}

// open returns an empty slot for tick, which becomes the newest. Ticks between the previous one and
// tick are missing.
func (l *inputLog) open(tick int64) *tickSlot {
	if !l.any || tick-l.next > ring {
		l.next = tick - ring
	}
	for ; l.next <= tick; l.next++ {
		s := l.slot(l.next)
		*s = tickSlot{tick: l.next, flat: s.flat[:0]}
	}
	l.any = true
	return l.slot(tick)
}

// acked marks the ticks from up to, not including, to as acked.
func (l *inputLog) acked(from, to int64) {
	for t := max(from, l.next-ring); t < to; t++ {
		if s := l.slot(t); s.tick == t {
			s.acked = true
		}
	}
}

// due returns the first tick that a packet must contain. ticks limits the number of ticks, room the
// bytes of inputs that differ from the tick before.
func (l *inputLog) due(ticks, room int) (from int64) {
	from = l.next
	if !l.any {
		return from
	}
	for t := l.next - 1; t >= l.next-int64(ticks); t-- {
		s := l.slot(t)
		if s.tick != t || s.acked {
			break
		}
		if before := l.slot(t - 1); s.known && (before.tick != t-1 || !before.known || !slices.Equal(before.flat, s.flat)) {
			if room -= len(s.flat); room < 0 {
				break
			}
		}
		from = t
	}
	for from < l.next && !l.slot(from).known {
		from++ // missing ticks at the start need not be sent
	}
	return from
}

// accept stores a tick that a packet contains and reports whether it was unknown before.
func (l *inputLog) accept(o *tickSlot) bool {
	s := l.slot(o.tick)
	if s.tick > o.tick || s.tick == o.tick && (s.known || !o.known) {
		return false
	}
	s.tick, s.known, s.flat = o.tick, o.known, append(s.flat[:0], o.flat...)
	return true
}

func wellFormed(flat []byte) bool {
	for before := -1; len(flat) > 0; {
		if len(flat) < 2 || int(flat[0]) <= before || len(flat) < 2+int(flat[1]) {
			return false
		}
		before, flat = int(flat[0]), flat[2+int(flat[1]):]
	}
	return true
}

// unflatten appends the inputs in flat, with whose memory they share their data.
func unflatten(dst []Input, flat []byte) []Input {
	for len(flat) > 0 {
		n := 2 + int(flat[1])
		dst = append(dst, Input{flat[0], flat[2:n:n]})
		flat = flat[n:]
	}
	return dst
}
