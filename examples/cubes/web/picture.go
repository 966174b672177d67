package web

import (
	"encoding/binary"
	"math"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// drawnCube is a cube as pages receive it.
type drawnCube struct {
	position    [3]int16 // millimeters
	orientation [4]int16 // 32767 is 1
	flags       uint8    // 1: interacting
}

// picture holds the cubes that were sent last for both ends, the server's first.
type picture [2][]drawnCube

func newPicture(count int) picture {
	return picture{make([]drawnCube, count), make([]drawnCube, count)}
}

func drawCube(s *world.Visual) drawnCube {
	p, q := &s.Position, &s.Orientation
	out := drawnCube{
		position:    [3]int16{scale(p.X, 1000), scale(p.Y, 1000), scale(p.Z, 1000)},
		orientation: [4]int16{scale(q.X, 32767), scale(q.Y, 32767), scale(q.Z, 32767), scale(q.W, 32767)},
	}
	if s.Interacting {
		out.flags = 1
	}
	return out
}

func scale(v, by float64) int16 {
	return int16(max(math.MinInt16, min(math.MaxInt16, math.Round(v*by))))
}

// update replaces end i of the picture. It appends the number of cubes that changed, or of all
// cubes, and each of them.
func (p *picture) update(dst []byte, i int, cubes func(n int) *world.Visual, all bool) []byte {
	at := len(dst)
	dst = append(dst, 0, 0)
	count := 0
	for n := range p[i] {
		s := drawCube(cubes(n))
		if s == p[i][n] && !all {
			continue
		}
		p[i][n] = s
		dst = s.append(dst, n)
		count++
	}
	binary.LittleEndian.PutUint16(dst[at:], uint16(count))
	return dst
}

func (s *drawnCube) append(dst []byte, n int) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	for _, v := range s.position {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	for _, v := range s.orientation {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	return append(dst, s.flags)
}

// all appends the whole picture.
func (p *picture) all(dst []byte) []byte {
	for i := range p {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(p[i])))
		for n := range p[i] {
			dst = p[i][n].append(dst, n)
		}
	}
	return dst
}
