package areas

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
)

// cubes are objects of 11 components in a grid of cells, and one client at an RTT of 12 ticks that
// sees all of them.
type cubes struct {
	schema  *snapshot.Schema
	world   *History
	typ     *Type
	grid    *area.Grid
	rng     *rand.Rand
	rows    [][]int32
	moves   []bool
	view    View
	builder Builder
	dec     *Decoder
	acks    []snapshot.Ack
	message []byte
	n       uint64
}

const cubeSide, cubeSize = 6, 1 << 12

func cubeSchema(tb testing.TB) *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "R", Class: schema.ClassQuat, N: 4, Hi: 1<<9 - 1},
		snapshot.Field{Name: "P", Class: schema.ClassNumber, N: 3, Lo: -1 << 17, Hi: 1<<17 - 1},
		snapshot.Field{Name: "V", Class: schema.ClassNumber, N: 3, Lo: -1 << 13, Hi: 1<<13 - 1},
		snapshot.Field{Name: "I", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// newCubes returns a world of which every so many objects moves.
func newCubes(tb testing.TB, objects, every int) *cubes {
	s := cubeSchema(tb)
	c := &cubes{schema: s, world: NewHistory(), rng: rand.New(rand.NewPCG(1, 1)), dec: NewDecoder(s)}
	c.typ = c.world.AddType(s)
	grid, err := area.NewGrid(1, 0, 0, cubeSize, cubeSide, cubeSide)
	if err != nil {
		tb.Fatal(err)
	}
	c.grid = grid
	for i := range objects {
		row := []int32{3, 255, 255, 255, c.rng.Int32N(cubeSide * cubeSize), c.rng.Int32N(cubeSide * cubeSize), 100, c.rng.Int32N(61) - 30, c.rng.Int32N(61) - 30, 0, 0}
		c.rows, c.moves = append(c.rows, row), append(c.moves, i%every == 0)
	}
	var all []area.ID
	for a := range area.ID(cubeSide * cubeSide) {
		all = append(all, a+1)
	}
	c.view.See(all)
	return c
}

// step makes the next message, against the newest baseline or one of the three before it.
func (c *cubes) step() {
	c.world.Begin()
	for i, r := range c.rows {
		if c.moves[i] {
			for k, v := range r[7:9] {
				if at := r[4+k] + v; at < 0 || at >= cubeSide*cubeSize {
					r[7+k] = -v
				}
				r[4+k] += r[7+k]
			}
			r[1], r[6] = (r[1]+1)%512, 100+c.rng.Int32N(3)
		}
		must(c.world.Put(c.typ, snapshot.Object{ID: uint16(i)}, r, c.grid.At(float64(r[4]), float64(r[5]))))
	}
	c.world.Commit()
	if n := len(c.acks); n >= 12 {
		_, err := c.view.Ack(c.acks[n-12])
		must(err)
	}
	b := c.view.Receipts.Baseline(c.n)
	if older := b.Distance + int(c.n%4); b.Distance > 0 {
		if full, _ := c.view.Receipts.Baselines(c.n, b.Step); full>>older&1 != 0 {
			b.Distance = older
		}
	}
	c.message = c.builder.Append(c.message[:0], c.world, &c.view, b, Limits{Enter: 1 << 20, Hold: 24})
	c.n++
}

func (c *cubes) decode() {
	_, _, err := c.dec.Decode(c.message)
	must(err)
	c.acks = append(c.acks, c.dec.Ack())
}

// TestMemory bounds the heap of a decoder of 901 cubes that all move.
func TestMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	c := newCubes(t, 901, 1)
	for range 2 * snapshot.Ring {
		c.step()
		c.decode()
	}
	if n := c.dec.Shown(0).Len(); n != len(c.rows) {
		t.Fatalf("%d objects are shown", n)
	}
	counted, with := c.dec.Memory(), allocs.Heap()
	c.dec = nil
	bytes := with - allocs.Heap()
	t.Logf("%d KiB, of which %d KiB are counted", bytes>>10, counted>>10)
	if bytes < 100<<10 || bytes > 1<<20 {
		t.Errorf("the decoder takes %d bytes, want at most 1 MiB", bytes)
	}
	runtime.KeepAlive(c)
}
