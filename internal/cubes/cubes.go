// Package cubes reads recordings of simulated cubes in the layout of the networked-physics
// data-compression challenge: frames of 901 cubes at 60 Hz, each cube eight little-endian 32-bit
// integers.
package cubes

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/uplink-rpc/uplink/internal/schema"
)

const (
	// Count is the number of cubes in a frame. The first is the player's.
	Count = 901
	// Rate is the number of frames per second.
	Rate = 60
	// Unit is the number of position steps per meter.
	Unit = 512
	// MaxComponent is the maximum of the three smallest elements of an orientation. It represents
	// 1 / sqrt 2.
	MaxComponent = 511

	integers  = 8
	frameSize = 4 * integers * Count
	// maxFrames is the maximum length of a recording: five minutes, half a gigabyte.
	maxFrames = 5 * 60 * Rate
)

// Cube is the recorded state of one cube.
type Cube struct {
	// Largest is the index of the largest element of the orientation: 0 to 3 for x, y, z and w.
	// That element is positive. Smallest has the others in the same order, 0 to MaxComponent for -1
	// / sqrt 2 to 1 / sqrt 2.
	Largest  int32
	Smallest [3]int32
	// Position is x, y and z, in steps.
	Position [3]int32
	// Interacting is 1 if the player touched the cube recently, else 0.
	Interacting int32
}

// Orientation returns the orientation of the cube.
func (c *Cube) Orientation() schema.Quat {
	var q [4]float64
	left, k := 1.0, 0
	for i := range q {
		if i == int(c.Largest) {
			continue
		}
		q[i] = (2*float64(c.Smallest[k])/MaxComponent - 1) / math.Sqrt2
		left -= q[i] * q[i]
		k++
	}
	q[c.Largest] = math.Sqrt(max(0, left))
	return schema.Quat{X: q[0], Y: q[1], Z: q[2], W: q[3]}
}

// Meters returns the position of the cube, in meters.
func (c *Cube) Meters() schema.Vec3 {
	return schema.Vec3{X: float64(c.Position[0]) / Unit, Y: float64(c.Position[1]) / Unit, Z: float64(c.Position[2]) / Unit}
}

// Frame is the state of all cubes at one time.
type Frame [Count]Cube

// ErrForeign means that a file is no recording of cubes.
var ErrForeign = errors.New("not a recording of cubes")

// Load reads the recording in a file, which may be compressed with gzip. The errors are those of
// [Read].
func Load(path string) ([]Frame, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	buffered := bufio.NewReader(f)
	var r io.Reader = buffered
	if start, _ := buffered.Peek(2); string(start) == "\x1f\x8b" {
		if r, err = gzip.NewReader(buffered); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	frames, err := Read(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return frames, nil
}

// Read reads a recording. It returns an error if the last frame is incomplete, a value is out of
// range, or the recording is longer than five minutes.
func Read(r io.Reader) ([]Frame, error) {
	var frames []Frame
	buf := make([]byte, frameSize)
	for {
		switch _, err := io.ReadFull(r, buf); {
		case errors.Is(err, io.EOF):
			return frames, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			if len(frames) == 0 {
				return nil, fmt.Errorf("%w: it has less than the %d bytes of a frame", ErrForeign, frameSize)
			}
			return nil, fmt.Errorf("frame %d is cut off, a frame has %d bytes: %w", len(frames), frameSize, err)
		case err != nil:
			return nil, err
		case len(frames) == maxFrames:
			return nil, fmt.Errorf("more than %d frames", maxFrames)
		}
		frames = append(frames, Frame{})
		if err := parse(&frames[len(frames)-1], buf); err != nil {
			return nil, fmt.Errorf("%w: frame %d: %w", ErrForeign, len(frames)-1, err)
		}
	}
}

func parse(f *Frame, b []byte) error {
	for i := range f {
		var v [integers]int32
		for k := range v {
			v[k] = int32(binary.LittleEndian.Uint32(b[4*(integers*i+k):]))
		}
		f[i] = Cube{Largest: v[0], Smallest: [3]int32(v[1:4]), Position: [3]int32(v[4:7]), Interacting: v[7]}
		if err := f[i].check(); err != nil {
			return fmt.Errorf("cube %d: %w", i, err)
		}
	}
	return nil
}

func (c *Cube) check() error {
	if c.Largest < 0 || c.Largest > 3 {
		return fmt.Errorf("index of the largest element is %d, must be 0 to 3", c.Largest)
	}
	for _, v := range c.Smallest {
		if v < 0 || v > MaxComponent {
			return fmt.Errorf("element of the orientation is %d, must be 0 to %d", v, MaxComponent)
		}
	}
	if c.Interacting < 0 || c.Interacting > 1 {
		return fmt.Errorf("interacting is %d, must be 0 or 1", c.Interacting)
	}
	return nil
}

// Append appends a frame in the format of [Read] and returns the extended slice.
func Append(dst []byte, f *Frame) []byte {
	for i := range f {
		c := &f[i]
		for _, v := range [integers]int32{
			c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], c.Interacting,
		} {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	}
	return dst
}

// Turn sets the orientation of the cube to the nearest one to q, which has length 1.
func (c *Cube) Turn(q schema.Quat) {
	e := [4]float64{q.X, q.Y, q.Z, q.W}
	c.Largest = 0
	for i := range e {
		if math.Abs(e[i]) > math.Abs(e[c.Largest]) {
			c.Largest = int32(i)
		}
	}
	sign := math.Copysign(1, e[c.Largest])
	k := 0
	for i, v := range e {
		if i == int(c.Largest) {
			continue
		}
		c.Smallest[k] = max(0, min(MaxComponent, int32(math.Floor((v*sign*math.Sqrt2+1)/2*MaxComponent+0.5))))
		k++
	}
}

// Move sets the position of the cube, rounded to the nearest step.
func (c *Cube) Move(meters schema.Vec3) {
	for i, v := range [3]float64{meters.X, meters.Y, meters.Z} {
		c.Position[i] = int32(math.Floor(v*Unit + 0.5))
	}
}
