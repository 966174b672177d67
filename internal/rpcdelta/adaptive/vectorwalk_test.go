package adaptive

import (
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// vectorWalk generates frames that move, in integers alone.
type vectorWalk struct {
	r     *rand.Rand
	s     *schema.Schema
	slope []int64
	quats map[int]quat.Precise
	jump  int // one in so many numbers jumps anywhere
}

func (w *vectorWalk) next(f *schema.Frame) {
	layouts := w.s.Layouts()
	for i := range layouts {
		l := &layouts[i]
		c := f.Ints[l.At:][:l.N]
		switch {
		case l.Class == schema.ClassBytes:
			w.bytes(l, &f.Bytes[l.Blob])
		case l.Class == schema.ClassQuat:
			w.turn(i, l, c)
		case l.Field.Kind == schema.KindBits || l.Field.Kind == schema.KindBool:
			for k := range c {
				if _, hi := l.ComponentRange(k); w.r.IntN(6) == 0 {
					c[k] ^= 1 << w.r.IntN(max(1, bitLen(hi)))
				}
			}
		case l.Class == schema.ClassInteger:
			w.count(l, c)
		default:
			w.move(l, c)
		}
	}
}

func bitLen(hi int64) (n int) {
	for ; hi > 0; hi >>= 1 {
		n++
	}
	return n
}

func (w *vectorWalk) bytes(l *schema.Layout, b *[]byte) {
	switch w.r.IntN(12) {
	case 0:
		*b = make([]byte, l.MinBytes+w.r.IntN(l.MaxBytes-l.MinBytes+1))
		for i := range *b {
			(*b)[i] = byte('a' + w.r.IntN(26))
		}
	case 1, 2, 3:
		if len(*b) > 0 {
			(*b)[w.r.IntN(len(*b))]++
		}
	}
}

// turn rotates by the field's angular velocity or, without one, about an axis that drifts.
func (w *vectorWalk) turn(i int, l *schema.Layout, c []int32) {
	q, ok := w.quats[i]
	if !ok {
		q = quat.Precise{W: 1 << 30}
	}
	s := w.slope[l.At:][:3]
	for k := range s {
		s[k] = max(-1<<28, min(1<<28, s[k]+w.r.Int64N(1<<26)-1<<25))
	}
	v := quat.Vector{s[0], s[1], s[2]}
	q = quat.ExpPrecise(&v).Mul(q)
	w.quats[i] = q
	elements := [4]int64{q.X, q.Y, q.Z, q.W}
	largest := 0
	for k, e := range elements {
		if max(e, -e) > max(elements[largest], -elements[largest]) {
			largest = k
		}
	}
	small := q.Smallest(largest, int64(l.Hi)*sqrt2Q16)
	c[0] = int32(largest)
	for k, e := range []int64{small.X, small.Y, small.Z} {
		c[1+k] = int32(max(int64(l.Lo), min(int64(l.Hi), (e+8)>>4)))
	}
	for _, of := range w.s.Velocities() {
		if of.Field == l.Field.Name { // half the angle in Q30 to steps of a hundredth of a radian a second
			for j := range w.s.Layouts() {
				if y := &w.s.Layouts()[j]; y.Field.Name == of.Of {
					for k := range s {
						w.slope[y.At+k] = (s[k]*2*60*100)>>30 + w.r.Int64N(3) - 1
					}
				}
			}
		}
	}
}

func (w *vectorWalk) count(l *schema.Layout, c []int32) {
	for k := range c {
		lo, hi := l.ComponentRange(k)
		switch n := w.r.IntN(20); {
		case n == 0 && l.Field.Name != "Tick":
			c[k] = int32(uint32(lo + int64(w.r.Uint64()%uint64(hi-lo+1))))
		case l.Field.Name == "Tick":
			c[k] = int32(int64(c[k])+int64(1+k)) & int32(hi)
		case l.Field.Name == "Clock" && k == 0:
			c[k]++
		case n < 5:
			c[k] = int32(uint32(min(hi, max(lo, int64(n)))))
		}
	}
}

func (w *vectorWalk) move(l *schema.Layout, c []int32) {
	for k := range c {
		lo, hi := int64(l.Lo), int64(l.Hi)
		v := int64(c[k])
		switch slope := &w.slope[l.At+k]; {
		case l.Field.Name == "Spin":
			v = *slope
		case w.r.IntN(w.jump) == 0: // a teleport
			v = lo + int64(w.r.Uint64()%uint64(hi-lo+1))
		case l.Field.Velocity != "":
			v += w.slope[l.At+l.N+k] / 60
		case l.Field.Name == "Mouse":
			v = w.r.Int64N(9) - 4
		case l.Class == schema.ClassAngle:
			v = (v + *slope>>2) & hi
			*slope += w.r.Int64N(9) - 4
		default:
			*slope += w.r.Int64N(13) - 6
			v += *slope
			if l.Field.Name == "Velocity" {
				v = *slope
			}
		}
		c[k] = int32(max(lo, min(hi, v)))
	}
}
