package adaptive

import (
	"bytes"
	"encoding/binary"
)

// flagInputs are what a flag "it changed" is predicted from: whether it had
// changed before the reference, and over the distance; the last flag coded; and
// whether a bit set changed in the frame.
const flagInputs = 4

// flagWeights are log odds in Q11.
type flagWeights [flagInputs]int16

// groupFlag is the flag of a field; its bias depends on the distance.
type groupFlag struct {
	bias [classes]int16
	w    flagWeights
}

// compFlag is the flag of a component.
type compFlag struct {
	bias int16
	w    flagWeights
}

// changes are a flag's inputs, and whether the frame itself differs from its
// reference.
type changes uint8

const (
	movedLast changes = 1 << iota // the reference differs from the frame before it
	movedFar                      // and from the one a distance before
	after                         // the last flag that was coded is set
	pressed                       // a bit set of the frame changed
	movedNow                      // no input
)

// toldBy is the input that a flag is to the next one.
func toldBy(changed bool) (x changes) {
	if changed {
		x = after
	}
	return x
}

// compare sets the inputs of all flags; row is the frame, or the reference where that
// is not known yet.
func (p *past) compare(row *Row) {
	b := p.b
	h1, hd := p.h1[:len(b)], p.hd[:len(b)]
	ints, moved := row.Ints[:len(b)], p.moved[:len(b)]
	for i, v := range b {
		moved[i] = byte(differ(v, h1[i]) | differ(v, hd[i])<<1 | differ(v, ints[i])<<4)
	}
	if len(p.base) > 0 {
		p.compareBytes(row)
	}
}

func (p *past) compareBytes(row *Row) {
	for i, base := range p.base {
		p.moved[len(p.b)+i] = byte(blobChanges(base, p.prev[i], row.Bytes[i]))
	}
}

// differ is 1 where a and b are not equal.
func differ(a, b int32) (x changes) {
	if a != b {
		x = 1
	}
	return x
}

// blobChanges are those of a byte string.
func blobChanges(base, prev, b []byte) (x changes) {
	if !bytes.Equal(base, prev) {
		x = movedLast
	}
	if !bytes.Equal(base, b) {
		x |= movedNow
	}
	return x
}

// changesOf are the inputs of a group's flag: those of any component.
func (p *past) changesOf(g *group) changes {
	if g.n > 8 {
		return union(p.moved[g.changes:][:g.n])
	}
	x := binary.LittleEndian.Uint64(p.moved[g.changes:]) << (g.beside & 63)
	x |= x >> 32
	x |= x >> 16
	return changes(x>>8 | x)
}

func union(moved []byte) (x changes) {
	for _, m := range moved {
		x |= changes(m)
	}
	return x
}

// odds is the chance of a change, of 65536.
func (w *flagWeights) odds(bias int16, x changes) uint32 {
	m := &masks[x&(1<<flagInputs-1)]
	s := int32(bias) + int32(w[0])&m[0] + int32(w[1])&m[1] + int32(w[2])&m[2] + int32(w[3])&m[3]
	return uint32(squash[(max(-1<<14, min(1<<14-1, s))+1<<14)>>squashBits])
}

// learn moves the weights by step.
func (w *flagWeights) learn(bias *int16, x changes, step int32) {
	m := &masks[x&(1<<flagInputs-1)]
	nudge(bias, step)
	nudge(&w[0], step&m[0])
	nudge(&w[1], step&m[1])
	nudge(&w[2], step&m[2])
	nudge(&w[3], step&m[3])
}

// masks has all bits of each input that is set.
var masks = func() (t [1 << flagInputs][flagInputs]int32) {
	for x := range t {
		for i := range t[x] {
			t[x][i] = -int32(x >> i & 1)
		}
	}
	return t
}()

func nudge(w *int16, d int32) {
	*w = int16(max(-20000, min(20000, int32(*w)+d)))
}

// flagStep is how far weights move, given the chance that was coded.
func flagStep(changed bool, odds uint32, slow int) int32 {
	e := -int32(odds)
	if changed {
		e += 1 << 16
	}
	s := (4 + slow) & 31
	return (e + 1<<s>>1) >> s
}

// squashBits are the low bits of log odds in Q11 that make no difference.
const squashBits = 6

// squash maps log odds in Q5 to a chance of 65536, never closer than 48 to
// either end.
var squash = func() (t [1 << (15 - squashBits)]uint16) {
	// 65536/(1+exp(-i)) for i = -9..10, joined by a cubic
	knots := [20]int64{8, 22, 60, 162, 439, 1179, 3108, 7812, 17625, 32768, 47911, 57724, 62428, 64357, 65097, 65374, 65476, 65514, 65528, 65533}
	for i := range t {
		k, f := i>>5, int64(i&31)
		p0, p1, p2, p3 := knots[k], knots[k+1], knots[k+2], knots[k+3]
		a := 2 * p1
		b := p2 - p0
		c := 2*p0 - 5*p1 + 4*p2 - p3
		d := 3*(p1-p2) + p3 - p0
		v := (a + (b+(c+d*f/32)*f/32)*f/32) / 2
		t[i] = uint16(max(48, min(1<<16-48, v)))
	}
	return t
}()
