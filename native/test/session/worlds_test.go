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

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/trace"
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
// that it decodes is the one that the server made.
func TestWorld(t *testing.T) {
	for command := range strings.SplitSeq(*commands, ",") {
		t.Run(filepath.Base(command), func(t *testing.T) {
			t.Parallel()
			showWorld(t, command)
		})
	}
}

func showWorld(t *testing.T, command string) {
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
		if _, err := p.Offer("balls"); err != nil {
			t.Error(err)
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
	world, err := ds.NewWorld(s, "balls", ds.WorldConfig[ball]{TickHz: 60, SendHz: 30})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.start(s.Addr()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = s.Serve(ctx) }()
	go simulate(ctx, t, world)

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
	snapshots, mismatches := compareBalls(t, log)
	t.Logf("%d snapshots shown, %d objects differ; %d datagrams passed, %d lost; seed %d", snapshots, mismatches, r.passed, r.lost, *seed)
	if mismatches > 0 || snapshots < 40 {
		t.Errorf("the world is not the server's\n%s", out)
	}
}

func simulate(ctx context.Context, t *testing.T, world *ds.World[ball]) {
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
			if b := ballAt(i, tick); err == nil {
				err = world.Put(uint16(3*i), uint8(tick/500), &b)
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

// compareBalls returns the numbers of snapshots in a log, and of objects that differ from those of
// the server.
func compareBalls(t *testing.T, log string) (snapshots, mismatches int) {
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
	row, seen, last := make([]int32, typ.Schema().Components()), map[uint64]int{}, uint64(0)
	for lines := bufio.NewScanner(f); lines.Scan(); {
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
			snapshots++
		}
		b := ballAt(i, tick)
		if err := typ.Quantize(row, &b); err != nil {
			t.Fatal(err)
		}
		equal := slices.EqualFunc(got[3:], row, func(a int64, b int32) bool { return a == int64(b) })
		if !equal || i != seen[tick] || got[2] != int64(uint8(tick/500)) {
			mismatches++
		}
		seen[tick]++
	}
	for tick, n := range seen {
		if n != balls(tick) {
			mismatches++
		}
	}
	return snapshots, mismatches
}
