package game

import (
	"math"
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/schema"
)

// Bot plays for a player.
type Bot struct {
	random *rand.Rand
	look   Look
	goal   schema.Vec3
	miss   schema.Vec3 // offset of the aim from a target's center
	keys   uint8
	until  uint64 // number of the picture up to which it holds the keys
}

// NewBot returns a bot. The numbers are its random seed.
func NewBot(game, player uint64) *Bot {
	return &Bot{random: rand.New(rand.NewPCG(game, player))}
}

// Play returns the bot's input for a picture: it dodges around the nearest player whom it can hit,
// and fires. If there is none, or the bot is out, it runs to another place.
func (b *Bot) Play(p *Picture) Input {
	at, target := b.choose(p)
	to := sub(schema.Vec3{X: at.X + b.miss.X, Y: at.Y + b.miss.Y, Z: at.Z + b.miss.Z}, p.Eye)
	want := Look{
		Yaw:   schema.Angle(math.Atan2(to.Y, to.X) * 180 / math.Pi),
		Pitch: schema.Angle(math.Atan2(to.Z, math.Hypot(to.X, to.Y)) * 180 / math.Pi),
	}
	turn := schema.Angle(math.Remainder(float64(want.Yaw-b.look.Yaw), 360))
	b.look.Yaw += max(-9, min(9, turn))
	b.look.Pitch += max(-6, min(6, want.Pitch-b.look.Pitch))
	in := Input{Look: b.look, Fire: target && b.look.Pitch == want.Pitch && math.Abs(float64(turn)) <= 9}
	if in.Fire {
		b.miss = schema.Vec3{X: b.random.NormFloat64() * .4, Y: b.random.NormFloat64() * .4, Z: b.random.NormFloat64() * .3}
	}
	if p.N >= b.until {
		b.until = p.N + 8 + b.random.Uint64N(50)
		b.keys = uint8(b.random.IntN(4)) * KeyLeft // left, right, both or none
		if b.random.IntN(8) == 0 {
			b.keys |= KeyJump
		}
	}
	in.Keys = b.keys
	switch d := length(to); {
	case !target || d > 14:
		in.Keys |= KeyForward
	case d < 7:
		in.Keys |= KeyBack
	}
	return in
}

// choose returns where the bot looks, and whether it would fire there.
func (b *Bot) choose(p *Picture) (at schema.Vec3, target bool) {
	nearest, out := float64(Range), false
	for i := range p.Objects {
		o := &p.Objects[i]
		n, _ := client.SplitID(p.IDs[i])
		if n == p.ID {
			out = o.Out
			continue
		}
		to := sub(o.Position, p.Eye)
		d := length(to)
		ray := Ray{p.Eye, schema.Vec3{X: to.X / d, Y: to.Y / d, Z: to.Z / d}}
		if !o.Out && d < nearest && d > Radius && ray.Free(d) == d {
			nearest, at, target = d, o.Position, true
		}
	}
	if target && !out {
		return at, true
	}
	if length(sub(b.goal, p.Eye)) < 5 || p.N%600 == 0 {
		b.goal = schema.Vec3{X: (2*b.random.Float64() - 1) * Size * .8, Y: (2*b.random.Float64() - 1) * Size * .8, Z: Radius}
	}
	return b.goal, false
}
