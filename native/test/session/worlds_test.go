//go:build native

package session

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// ball is an object of the world.
type ball struct {
	Position schema.Vec3 `uplink:"resolution=0.002,min=-250,max=250,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.03"`
	Rotation schema.Quat `uplink:"bits=10"`
	Lit      bool
	Label    string `uplink:"max=8"`
}

// ballSchema is the schema file of ball.
const ballSchema = `{"rpc": "ball", "rate_hz": 60, "fields": [
	{"name": "Position", "kind": "vec3", "resolution": 0.002, "min": -250, "max": 250, "velocity": "Velocity"},
	{"name": "Velocity", "kind": "vec3", "resolution": 0.03},
	{"name": "Rotation", "kind": "quat", "bits": 10},
	{"name": "Lit", "kind": "bool"},
	{"name": "Label", "kind": "bytes", "max": 8}]}`

// ballAt returns ball i at a tick. Each bounces with its own period; some rest.
func ballAt(i int, tick uint64) ball {
	t, period := float64(tick)/60, 1+0.1*float64(i)
	if i%3 == 0 {
		t = 0
	}
	phase := math.Mod(t+0.3*float64(i), period)
	sin, cos := math.Sincos(t * float64(1+i%5))
	return ball{
		Position: schema.Vec3{X: float64(i), Z: 5 * phase * (period - phase)}, Velocity: schema.Vec3{Z: 5 * (period - 2*phase)},
		Rotation: schema.Quat{Z: sin, W: cos}, Lit: phase < 0.1, Label: fmt.Sprint(i, tick/100),
	}
}

// balls returns how many balls there are at a tick: now and then one more, or none.
func balls(tick uint64) int { return int(tick/60) % 40 }

// Each console client shows a world, over a link that loses and delays datagrams. Each snapshot
// that it decodes is the one that the server made. Of a world with areas, it shows the balls in
// sight.
func TestWorld(t *testing.T) {
	for command := range strings.SplitSeq(*commands, ",") {
		for _, areas := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/areas=%t", filepath.Base(command), areas), func(t *testing.T) {
				t.Parallel()
				showWorld(t, command, areas)
			})
		}
	}
}

func showWorld(t *testing.T, command string, areas bool) {
	r, err := newRelay(*rtt/2, *loss, *seed)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	rpc, err := trace.LoadSchema(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ds.Listen("127.0.0.1:0", ds.Config{Joined: func(p *ds.Player) {
		stream, err := p.Offer("balls")
		if err != nil {
			t.Error(err)
		} else if areas {
			stream.See(2)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SetAddrs(r.addr()); err != nil {
		t.Fatal(err)
	}
	if err := ds.HandleSchema(s, rpc, func(*ds.Player, ds.Frame[*schema.Frame]) {}); err != nil {
		t.Fatal(err)
	}
	world, err := ds.NewWorld(s, "balls", ds.WorldConfig[ball]{TickHz: 60, SendHz: 30, Areas: areas})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.start(s.Addr()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = s.Serve(ctx) }()
	go simulate(ctx, t, world, areas)

	dir := t.TempDir()
	file, log := filepath.Join(dir, "ball.schema.json"), filepath.Join(dir, "balls.txt")
	if err := os.WriteFile(file, []byte(ballSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields(command), schemaFile, r.addr().String(), "3", "-", "-", "balls", file, log)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := compareBalls(t, log, areas)
	t.Logf("shown: %+v; %d datagrams passed, %d lost; seed %d", got, r.passed, r.lost, *seed)
	if got.mismatches > 0 || got.snapshots < 40 || got.stale > got.objects/10 {
		t.Errorf("the world is not the server's\n%s", out)
	}
}

func simulate(ctx context.Context, t *testing.T, world *ds.World[ball], areas bool) {
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	for tick := uint64(2000); ; tick += 2 {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := world.Begin(tick)
		for i := range balls(tick) {
			var in []area.ID
			if areas {
				in = []area.ID{area.ID(2 + i%2)}
			}
			if b := ballAt(i, tick); err == nil {
				err = world.Put(uint16(3*i), uint8(tick/500), &b, in...)
			}
		}
		if err == nil {
			world.Commit()
			_, err = world.Send()
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// shown is what a log of a client has.
type shown struct {
	snapshots, objects int
	stale              int // objects of an earlier tick
	mismatches         int
}

// compareBalls compares a log with what the server put. With areas, a snapshot has some of the
// balls in sight, and a ball may be as it was at an earlier tick.
func compareBalls(t *testing.T, log string, areas bool) shown {
	t.Helper()
	typ, err := snapshot.Compile[ball]("ball")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	row := make([]int32, typ.Schema().Components())
	// is reports whether values are those of a ball at a tick.
	is := func(i int, tick uint64, values []int64) bool {
		b := ballAt(i, tick)
		if err := typ.Quantize(row, &b); err != nil {
			t.Fatal(err)
		}
		return slices.EqualFunc(values, row, func(a int64, b int32) bool { return a == int64(b) })
	}
	var out shown
	seen, last := map[uint64]int{}, uint64(0)
	for lines := bufio.NewScanner(f); lines.Scan(); out.objects++ {
		var got []int64
		for _, w := range strings.Fields(lines.Text()) {
			var v int64
			if _, err := fmt.Sscan(w, &v); err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		tick, i := uint64(got[0]), int(got[1])/3
		if seen[tick] == 0 {
			if tick <= last {
				t.Errorf("tick %d after %d", tick, last)
			}
			last = tick
			out.snapshots++
		}
		at := tick
		for areas && at+128 > tick && !is(i, at, got[3:]) {
			at -= 2
		}
		if at != tick {
			out.stale++
		}
		if !is(i, at, got[3:]) || got[2] != int64(uint8(at/500)) || (areas && i%2 != 0) || (!areas && i != seen[tick]) {
			out.mismatches++
		}
		seen[tick]++
	}
	for tick, n := range seen {
		if n > balls(tick) || (!areas && n != balls(tick)) {
			out.mismatches++
		}
	}
	return out
}
