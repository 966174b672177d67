//go:build native

package session

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/statesync"
)

var stateClients = flag.String("state", "../../build/gcc/examples/uplink_state", "clients that receive state, comma-separated")

// body is an object of the world "movers".
type body struct {
	Position schema.Vec3 `uplink:"resolution=0.25,min=-1000,max=1000,velocity=Speed"`
	Speed    schema.Vec3 `uplink:"resolution=0.25,min=-1000,max=1000"`
	Asleep   bool        `statesync:"rest"`
}

// Each client receives a world by state synchronization, over a link that loses and delays
// datagrams. What it prints is what the server put, and most objects of the end have arrived.
func TestState(t *testing.T) {
	for command := range strings.SplitSeq(*stateClients, ",") {
		t.Run(filepath.Base(command), func(t *testing.T) { receiveState(t, command) })
	}
}

func receiveState(t *testing.T, command string) {
	const ticks, objects = 150, 40
	r, err := newRelay(*rtt/2, *loss, *seed)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	joined := make(chan *ds.Player, 1)
	s, err := ds.Listen("127.0.0.1:0", ds.Config{
		Addrs:  []netip.AddrPort{r.addr()},
		Joined: func(p *ds.Player) { joined <- p },
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ctx) }()
	if err := r.start(s.Addr()); err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields(command), r.addr().String())
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	player := <-joined
	world, err := ds.NewWorld(s, "movers", ds.WorldConfig[body]{TickHz: 60})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := world.OfferState(player, ds.StateConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint16(objects) {
		if err := world.Prioritize(id, 1); err != nil {
			t.Fatal(err)
		}
	}
	put := map[string]bool{"world 2": true} // the end
	clock := time.NewTicker(time.Second / 60)
	defer clock.Stop()
	for tick := uint64(1); tick <= ticks; tick++ {
		<-clock.C
		step(t, world, tick, objects, put)
		input := byte(tick / 8)
		if err := stream.AddInputs(tick, statesync.Input{Player: 3, Data: []byte{input}}); err != nil {
			t.Fatal(err)
		}
		put[fmt.Sprintf("input %d 3 %d", tick, input)] = true
		if _, err := world.Send(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	_ = s.Close()
	got, updated, last := map[string]int{}, 0, map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		kind, _, _ := strings.Cut(line, " ")
		got[kind]++
		if !put[line] {
			t.Errorf("the server has not put %q", line)
		}
		if f := strings.Fields(line); kind == "object" {
			updated++
			last[f[2]] = true
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%v of %d objects and %d ticks; seed %d", got, objects, ticks, *seed)
	if len(last) < objects || got["input"] < ticks*3/4 || got["object"] < 1000 || got["removed"] == 0 {
		t.Errorf("%d of %d objects, and %v", len(last), objects, got)
	}
}

// step puts the objects of a tick, and notes the lines that a client may print of it. An object is
// absent in some ticks, another one has a new generation from time to time.
func step(t *testing.T, world *ds.World[body], tick uint64, objects int, put map[string]bool) {
	if err := world.Begin(tick); err != nil {
		t.Fatal(err)
	}
	for id := range uint16(objects) {
		put[fmt.Sprintf("removed %d %d", tick, id)] = id == 7
		if id == 7 && tick/30%2 == 1 {
			continue
		}
		v, generation, at := body{}, uint8(0), float64(tick)/60
		if id == 9 {
			generation = uint8(tick / 50)
		}
		if v.Asleep = id%5 == 4; !v.Asleep {
			v.Speed = schema.Vec3{X: float64(id), Y: -2}
			at -= float64(tick/90) / 60
		} else {
			at = 0
		}
		v.Position = schema.Vec3{X: quarter(float64(id) * at), Y: quarter(-2 * at), Z: float64(id)}
		if err := world.Put(id, generation, &v); err != nil {
			t.Fatal(err)
		}
		asleep := 0
		if v.Asleep {
			asleep = 1
		}
		put[fmt.Sprintf("object %d %d %d %.2f %.2f %.2f %.2f %.2f %.2f %d", tick, id, generation, v.Position.X, v.Position.Y, v.Position.Z,
			v.Speed.X, v.Speed.Y, v.Speed.Z, asleep)] = true
	}
	world.Commit()
}

// quarter rounds to steps of the schema.
func quarter(x float64) float64 { return float64(int(x*4)) / 4 }
