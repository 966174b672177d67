package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/schema"
)

func newRecordCommand() *cobra.Command {
	p := world.Default()
	frames, seed, reach := 3000, uint64(1), float64(world.ScriptReach)
	c := &cobra.Command{
		Use:   "record FILE",
		Short: "Records a scripted run for the commands snapshots and world of lab",
		Long: `record simulates a scripted run and writes 901 cubes a frame, at 60 Hz, in the layout of the articles'
compression challenge: for each cube eight 32-bit integers, little-endian. FILE is compressed if its name ends in .gz.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if frames < 1 || frames > 5*60*cubes.Rate {
				return fmt.Errorf("--frames is %d: want 1 to %d", frames, 5*60*cubes.Rate)
			}
			return record(args[0], p, frames, seed, reach)
		},
	}
	f := c.Flags()
	f.IntVar(&frames, "frames", frames, "number of frames")
	f.Uint64Var(&seed, "seed", seed, "seed of the script")
	f.Float64Var(&reach, "reach", reach, "maximum distance of targets from the origin along each axis, in meters")
	f.Float64Var(&p.Size, "size", p.Size, "size of a cube, in meters")
	f.Float64Var(&p.PlayerSize, "player-size", p.PlayerSize, "size of the player's cube, in meters")
	f.Float64Var(&p.Friction, "friction", p.Friction, "friction of all contacts")
	f.Float64Var(&p.Bounce, "bounce", p.Bounce, "bounce of all contacts, 0 to 1")
	f.Float64Var(&p.Gravity, "gravity", p.Gravity, "gravity, in m/s²")
	f.Float64Var(&p.Roll, "roll", p.Roll, "acceleration of the player, in m/s²")
	f.Float64Var(&p.Pull, "pull", p.Pull, "acceleration of other cubes towards the player, in m/s²")
	return c
}

// record writes a recording to a file, compressed if its name ends in .gz.
func record(path string, p world.Params, frames int, seed uint64, reach float64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !strings.HasSuffix(path, ".gz") {
		return writeRecording(f, p, frames, seed, reach)
	}
	z := gzip.NewWriter(f)
	return errors.Join(writeRecording(z, p, frames, seed, reach), z.Close())
}

// still is the number of frames at the start in which nothing moves, as the layout requires.
const still = 6

func writeRecording(to io.Writer, p world.Params, frames int, seed uint64, reach float64) error {
	w, err := world.New(p)
	if err != nil {
		return err
	}
	if w.Count() != cubes.Count {
		return fmt.Errorf("there are %d cubes, a recording has %d", w.Count(), cubes.Count)
	}
	out := bufio.NewWriterSize(to, 1<<16)
	steer := world.NewScript(seed, reach)
	bodies := make([]world.Body, w.Count())
	var frame cubes.Frame
	var buf []byte
	for n := range frames {
		if n >= still {
			w.Step(steer.Next(bodies[0].Position), uint32(n))
		}
		w.Bodies(bodies)
		for i := range bodies {
			b, c := &bodies[i], &frame[i]
			c.Move(schema.Vec3{X: b.Position[0], Y: b.Position[1], Z: b.Position[2]})
			c.Turn(schema.Quat{X: b.Orientation[0], Y: b.Orientation[1], Z: b.Orientation[2], W: b.Orientation[3]})
			c.Interacting = 0
			if b.Interacting() {
				c.Interacting = 1
			}
		}
		buf = cubes.Append(buf[:0], &frame)
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	return out.Flush()
}
