package adaptive

import "bytes"

// flagInputs are what a flag "it changed" is predicted from: whether it had
// changed before the reference, before that, and over the distance; and the
// last two flags coded.
const flagInputs = 5

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

// changes are a flag's inputs from the past, each 0 or -1.
type changes struct{ near, before, far int32 }

// flags are the last two flags coded, each 0 or -1.
type flags struct{ last, second int32 }

func (f *flags) push(changed bool) {
	f.second = f.last
	f.last = maskOf(changed)
}

// of sets the inputs of a group's flag.
func (x *changes) of(p *past, g *group) {
	if g.form == formBytes {
		*x = changes{near: maskOf(!bytes.Equal(p.base.Bytes[g.blob], p.prev.Bytes[g.blob]))}
		return
	}
	b := p.b[g.at:][:g.n]
	h1, h2, hd := p.h1[g.at:][:len(b)], p.h2[g.at:][:len(b)], p.hd[g.at:][:len(b)]
	var near, before, far int32
	for i, v := range b {
		near |= v ^ h1[i]
		before |= h1[i] ^ h2[i]
		far |= v ^ hd[i]
	}
	*x = changes{mask(near), mask(before), mask(far)}
}

// at sets the inputs of a component's flag.
func (x *changes) at(p *past, i int) {
	b, h1 := p.b[i], p.h1[i]
	*x = changes{mask(b ^ h1), mask(h1 ^ p.h2[i]), mask(b ^ p.hd[i])}
}

// odds is the chance of a change, of 65536.
func (w *flagWeights) odds(bias int16, x changes, f flags) uint32 {
	s := int32(bias) + int32(w[0])&x.near + int32(w[1])&x.before + int32(w[2])&x.far
	s += int32(w[3])&f.last + int32(w[4])&f.second
	return uint32(squash[(max(-1<<14, min(1<<14-1, s))+1<<14)>>squashBits])
}

// learn moves the weights by step.
func (w *flagWeights) learn(bias *int16, x changes, f flags, step int32) {
	nudge(bias, step)
	nudge(&w[0], step&x.near)
	nudge(&w[1], step&x.before)
	nudge(&w[2], step&x.far)
	nudge(&w[3], step&f.last)
	nudge(&w[4], step&f.second)
}

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

// mask is -1 where x is not 0.
func mask(x int32) int32 { return (x | -x) >> 31 }

func maskOf(b bool) int32 {
	if b {
		return -1
	}
	return 0
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
