package rangecoder

import "math"

// Cost is how many bits the decisions so far take, in fractions; those of a shared
// byte that are not free count too. It is for measurements: nothing that is coded
// may depend on it.
func (e *Encoder) Cost() float64 {
	return float64(8*(len(e.buf)-e.start)) + 64 - math.Log2(float64(e.rng))
}
