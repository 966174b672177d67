package game

import (
	"math"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// Block is a box that stops players and shots. Its coordinates are multiples of half a meter.
type Block struct{ Min, Max schema.Vec3 }

// Size is half the length of the arena, in meters.
const Size = 48

// Blocks are the floor, the walls around the arena, and the obstacles in it.
var Blocks = arena()

func arena() []Block {
	all := []Block{{schema.Vec3{X: -Size - 8, Y: -Size - 8, Z: -8}, schema.Vec3{X: Size + 8, Y: Size + 8}}}
	for _, b := range []Block{
		{schema.Vec3{X: -Size - 8, Y: Size}, schema.Vec3{X: Size + 8, Y: Size + 8, Z: 4}},
		{schema.Vec3{X: 4, Y: 4}, schema.Vec3{X: 5, Y: 14, Z: 3}},
		{schema.Vec3{X: 10, Y: -3}, schema.Vec3{X: 13, Y: 3, Z: 1}},
		{schema.Vec3{X: 18, Y: 12}, schema.Vec3{X: 30, Y: 13, Z: 3}},
		{schema.Vec3{X: 20, Y: -12}, schema.Vec3{X: 23, Y: -9, Z: 4}},
		{schema.Vec3{X: 28, Y: 24}, schema.Vec3{X: 32, Y: 28, Z: 1}},
		{schema.Vec3{X: 36, Y: -2}, schema.Vec3{X: 37, Y: 10, Z: 3}},
		{schema.Vec3{X: 38, Y: 36}, schema.Vec3{X: 41, Y: 39, Z: 4}},
	} {
		for range 4 { // a quarter turn each
			all = append(all, b)
			b = Block{schema.Vec3{X: -b.Max.Y, Y: b.Min.X, Z: b.Min.Z}, schema.Vec3{X: -b.Min.Y, Y: b.Max.X, Z: b.Max.Z}}
		}
	}
	return all
}

// contains reports whether a point is less than a distance from the block, on each axis.
func (k *Block) contains(p schema.Vec3, within float64) bool {
	return p.X > k.Min.X-within && p.X < k.Max.X+within && p.Y > k.Min.Y-within && p.Y < k.Max.Y+within &&
		p.Z > k.Min.Z-within && p.Z < k.Max.Z+within
}

// bounds returns the bounds of the block on one axis. at points to the coordinate of that axis in
// p.
func (k *Block) bounds(p *schema.Vec3, at *float64) (low, high float64) {
	switch at {
	case &p.X:
		return k.Min.X, k.Max.X
	case &p.Y:
		return k.Min.Y, k.Max.Y
	}
	return k.Min.Z, k.Max.Z
}

// Ray is a line of sight. Its direction has length 1.
type Ray struct{ From, Direction schema.Vec3 }

func (r Ray) at(d float64) schema.Vec3 {
	return schema.Vec3{X: r.From.X + d*r.Direction.X, Y: r.From.Y + d*r.Direction.Y, Z: r.From.Z + d*r.Direction.Z}
}

// Free returns the length of the ray up to the first block, at most a distance.
func (r Ray) Free(most float64) float64 {
	for i := range Blocks {
		k := &Blocks[i]
		enter, leave := 0.0, most
		for _, a := range [3][4]float64{
			{r.From.X, r.Direction.X, k.Min.X, k.Max.X},
			{r.From.Y, r.Direction.Y, k.Min.Y, k.Max.Y},
			{r.From.Z, r.Direction.Z, k.Min.Z, k.Max.Z},
		} {
			near, far := (a[2]-a[0])/a[1], (a[3]-a[0])/a[1]
			if a[1] == 0 { // parallel
				near, far = math.Inf(-1), math.Inf(1)
				if a[0] <= a[2] || a[0] >= a[3] {
					far = near
				}
			}
			enter, leave = max(enter, min(near, far)), min(leave, max(near, far))
		}
		if enter < leave {
			most = enter
		}
	}
	return most
}

// Ball returns the distance between the ray and the surface of a player, negative if the ray hits
// the player, and the length of the ray up to that point.
func (r Ray) Ball(center schema.Vec3) (gap, depth float64) {
	to := sub(center, r.From)
	along := max(0, to.X*r.Direction.X+to.Y*r.Direction.Y+to.Z*r.Direction.Z)
	d := length(sub(center, r.at(along)))
	return d - Radius, max(0, along-math.Sqrt(max(0, Radius*Radius-d*d)))
}

// Trace returns the first player that a ray hits, or 0, and the length of the ray up to the hit. A
// ray ignores its own player and ends at blocks.
func (r Ray) Trace(own uint16, players *Players) (id uint16, far float64) {
	far = r.Free(Range)
	for i := range players.Objects {
		if n, _ := client.SplitID(players.IDs[i]); n != own {
			if gap, depth := r.Ball(players.Objects[i].Position); gap < 0 && depth < far {
				id, far = n, depth
			}
		}
	}
	return id, far
}

// Players are the players at one time.
type Players = interpolate.Sample[Player]

func sub(a, b schema.Vec3) schema.Vec3 { return schema.Vec3{X: a.X - b.X, Y: a.Y - b.Y, Z: a.Z - b.Z} }

func length(v schema.Vec3) float64 { return math.Sqrt(v.X*v.X + v.Y*v.Y + v.Z*v.Z) }
