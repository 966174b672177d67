package quat

import "github.com/uplink-rpc/uplink/internal/codec/fixed"

// Matrix is a rotation matrix in Q16, by rows.
type Matrix [3][3]int64

// Set sets m to the matrix of q.
func (m *Matrix) Set(q *Fixed) {
	x, y, z, w := q[0], q[1], q[2], q[3]
	const one, s = One, Shift - 1
	m[0][0], m[0][1], m[0][2] = one-(y*y+z*z)>>s, (x*y-z*w)>>s, (x*z+y*w)>>s
	m[1][0], m[1][1], m[1][2] = (x*y+z*w)>>s, one-(x*x+z*z)>>s, (y*z-x*w)>>s
	m[2][0], m[2][1], m[2][2] = (x*z-y*w)>>s, (y*z+x*w)>>s, one-(x*x+y*y)>>s
}

// Extent returns the extent of a cube of half size 1 along axis k, Q16.
func (m *Matrix) Extent(k int) int64 {
	return fixed.Abs(m[k][0]) + fixed.Abs(m[k][1]) + fixed.Abs(m[k][2])
}

// Corner returns the lowest corner along an axis, as the signs of its coordinates.
func (m *Matrix) Corner(axis int) (c [3]int64) {
	for i, v := range m[axis] {
		c[i] = 1
		if v > 0 {
			c[i] = -1
		}
	}
	return c
}

// Displacement returns the movement of a corner along axis k from rotation m to o, Q16.
func (m *Matrix) Displacement(o *Matrix, c *[3]int64, k int) (sum int64) {
	for i := range c {
		sum += (o[k][i] - m[k][i]) * c[i]
	}
	return sum
}

// FixLargest restores the condition that the omitted component of a quaternion is the largest, if
// rounding made another one larger. c are the other components, limit is 1/sqrt 2 in steps.
func FixLargest(c []int32, limit int64) {
	for {
		left, most := 2*limit*limit, 0
		for i, v := range c {
			left -= int64(v) * int64(v)
			if fixed.Abs(int64(v)) > fixed.Abs(int64(c[most])) {
				most = i
			}
		}
		switch v := int64(c[most]); {
		case v*v < left:
			return
		case v > 0:
			c[most]--
		default:
			c[most]++
		}
	}
}
