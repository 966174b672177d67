package interpolate_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

var update = flag.Bool("update", false, "write testdata/sessions/interpolation.session")

// crate is an object of the golden sessions.
type crate struct {
	Position schema.Vec3 `uplink:"resolution=0.001,min=-1000,max=1000" interpolate:"position"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100" interpolate:"velocity"`
	Rotation schema.Quat `uplink:"bits=12" interpolate:"orientation"`
	Jumps    uint8       `uplink:"width=2" interpolate:"teleports"`
}

// crateAt returns a crate on a circle. It turns, and jumps once a second if jumps is set.
func crateAt(k int, t time.Duration, jumps bool) (c crate) {
	s := t.Seconds() * (1 + float64(k)/3)
	c.Position = schema.Vec3{X: 10 * math.Cos(s), Y: 10 * math.Sin(s), Z: float64(k)}
	c.Velocity = schema.Vec3{X: -10 * math.Sin(s), Y: 10 * math.Cos(s)}
	c.Rotation = schema.Quat{X: math.Sin(s) / 2, Y: 0.1, Z: math.Cos(s), W: 0.3}
	if jumps {
		n := int(t / time.Second)
		c.Position.Z += 5 * float64(n)
		c.Jumps = uint8(n) % 4
	}
	return c
}

// TestGolden writes the session of a Buffer, or compares it with the file from which other
// implementations read it.
func TestGolden(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprintln(&out, `# Interpolation. Times are in ns. Fields of an object: Position vec3, resolution 0.001, -1000 to 1000;
# Velocity vec3, resolution 0.01, -100 to 100; Rotation quat, 12 bits; Jumps uint, 2 bits.`)
	for seed, cfg := range []interpolate.Config{
		{Interval: 50 * ms},
		{Interval: 50 * ms, Method: interpolate.Hermite, Delay: 80 * ms, Extrapolate: 200 * ms},
		{Interval: 100 * ms, Method: interpolate.Nearest, Jitter: 20 * ms, Loss: 0.01},
		{Interval: 50 * ms, Adaptive: true, Extrapolate: 100 * ms, Gap: 400 * ms},
	} {
		recordGolden(t, &out, cfg, uint64(seed))
	}
	file := filepath.Join("..", "testdata", "sessions", "interpolation.session")
	if *update {
		must(t, os.WriteFile(file, out.Bytes(), 0o600))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%s differs; -update writes it", file)
	}
}

func recordGolden(t *testing.T, out *bytes.Buffer, cfg interpolate.Config, seed uint64) {
	adapter, err := interpolate.Tagged[crate]()
	must(t, err)
	b, err := interpolate.New(adapter, cfg)
	must(t, err)
	typ, err := snapshot.Compile[crate]("crate")
	must(t, err)
	adaptive := 0
	if cfg.Adaptive {
		adaptive = 1
	}
	fmt.Fprintf(out, "config %d %d %d %d %d %v %d %d\n", cfg.Interval, cfg.Method, adaptive, cfg.Delay, cfg.Jitter, cfg.Loss, cfg.Extrapolate, cfg.Gap)
	rng := rand.New(rand.NewPCG(8, seed))
	arrivals := map[int][]time.Duration{} // server times by the step of 10 ms in which they arrive
	interval := int(cfg.Interval / (10 * ms))
	for step := range 380 {
		now := time.Hour + time.Duration(step)*10*ms
		if step%interval == 0 && (step < 250 || step > 300) {
			server := 2*time.Second + time.Duration(step)*10*ms
			if step > 300 {
				server += 3 * time.Second
			}
			for range []int{0, 1, 1, 1, 1, 1, 1, 2}[rng.IntN(8)] {
				at := step + 2 + rng.IntN(6)
				arrivals[at] = append(arrivals[at], server)
			}
		}
		for _, server := range arrivals[step] {
			addGolden(t, out, b, typ, now, server)
		}
		if step%7 == 1 {
			sampleGolden(out, b, now+time.Duration(rng.IntN(int(ms))))
		}
	}
	st := b.Stats()
	fmt.Fprintf(out, "stats %d %d %d %d %d %d %d\n", st.Added, st.Late, st.Duplicate, st.Restarts, st.Hitches, st.Starved, st.Delay)
}

// addGolden adds the snapshot of a server time, with the values that a client restores.
func addGolden(t *testing.T, out *bytes.Buffer, b *interpolate.Buffer[crate], typ *snapshot.Type[crate], now, server time.Duration) {
	var ids []uint32
	var objects []crate
	row := make([]int32, typ.Schema().Components())
	for k := range 3 {
		if k == 1 && server/(300*ms)%3 == 0 {
			continue // it comes and goes
		}
		c, generation := crateAt(k, server, k == 2), uint32(server/(2*time.Second))
		must(t, typ.Quantize(row, &c))
		must(t, typ.Restore(&c, row))
		ids, objects = append(ids, uint32(5*k)<<8|generation), append(objects, c)
		fmt.Fprintf(out, "object %d %d", 5*k, generation)
		for _, v := range row {
			fmt.Fprintf(out, " %d", v)
		}
		fmt.Fprintln(out)
	}
	before := b.Stats().Duplicate
	err, outcome := b.Add(now, server, ids, objects), "right"
	switch {
	case b.Stats().Duplicate > before:
		outcome = "duplicate"
	case errors.Is(err, interpolate.ErrLate):
		outcome = "late"
	default:
		must(t, err)
	}
	fmt.Fprintf(out, "add %d %d = %s\n", now, server, outcome)
}

func sampleGolden(out *bytes.Buffer, b *interpolate.Buffer[crate], now time.Duration) {
	var s interpolate.Sample[crate]
	if !b.Sample(now, &s) {
		fmt.Fprintf(out, "sample %d = nothing\n", now)
		return
	}
	starved := 0
	if s.Starved {
		starved = 1
	}
	fmt.Fprintf(out, "sample %d = %d %d\n", now, s.Time, starved)
	for i, c := range s.Objects {
		fmt.Fprintf(out, "pose %d %d", s.IDs[i]>>8, s.IDs[i]&255)
		p, v, q := c.Position, c.Velocity, c.Rotation
		for _, x := range []float64{p.X, p.Y, p.Z, v.X, v.Y, v.Z, q.X, q.Y, q.Z, q.W} {
			out.WriteByte(' ')
			out.Write(strconv.AppendFloat(nil, x, 'g', 9, 64))
		}
		fmt.Fprintf(out, " %d\n", c.Jumps)
	}
}
