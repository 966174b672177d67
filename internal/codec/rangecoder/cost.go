package rangecoder

import "math"

// Cost returns the size of the decisions so far in bits, with fractions. The bits of a shared first
// byte that are not free count too. It is for measurements: its floating point must not affect what
// is coded.
func (e *Encoder) Cost() float64 {
	return float64(8*(len(e.buf)-e.start)) + 64 - math.Log2(float64(e.rng))
}
