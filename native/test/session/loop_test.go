//go:build native

package session

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
)

var loopClient = flag.String("loop", "", "client that predicts a sled")

type push struct {
	Force float32 `uplink:"resolution=0.25"`
}

type sled struct{ X, Speed int32 }

// A client of another language predicts a sled in two sessions. When the sled stands still, it is
// where the client predicts it.
func TestLoop(t *testing.T) {
	if *loopClient == "" {
		t.Skip("-loop names no client")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var world *ds.World[sled]
	own, joined := sled{}, uint8(0)
	s, err := ds.Listen("127.0.0.1:0", ds.Config{Poll: true, TickHz: 60, Joined: func(p *ds.Player) {
		joined++
		own = sled{X: 10_000 * int32(joined)}
		if _, err := world.Offer(p); err != nil {
			t.Error(err)
		}
	}})
	if err == nil {
		world, err = ds.NewWorld(s, "sleds", ds.WorldConfig[sled]{TickHz: 60})
	}
	if err == nil {
		err = ds.Handle(s, "Push", func(_ *ds.Player, f ds.Frame[push]) {
			own.Speed = own.Speed*7/8 + int32(f.Value.Force*16)
			own.X += own.Speed
		}, ds.JitterBuffer{}, ds.ForPrediction{})
	}
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer s.Close()
	work.Go(func() { _ = s.Serve(ctx) })
	words := append(strings.Fields(*loopClient), s.Addr().String())
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	printed := make(chan string, 1)
	go func() {
		out, err := cmd.Output()
		if err != nil {
			t.Error(err)
		}
		printed <- string(out)
	}()
	clock := time.NewTicker(time.Second / 60)
	defer clock.Stop()
	for tick := uint64(1); ; tick++ {
		select {
		case line := <-printed:
			var got sled
			var sessions, inputs int
			var unsent bool
			if _, err := fmt.Sscan(line, &sessions, &got.X, &got.Speed, &inputs, &unsent); err != nil || sessions != 2 || got != own || inputs < 300 || !unsent {
				t.Errorf("%q, %v, want 2 sessions with 300 inputs, the second with a sled at %+v", line, err, own)
			}
			return
		case <-clock.C:
		}
		s.Poll()
		err := errors.Join(world.Begin(tick), world.Put(1, joined, &own))
		if _, sent := world.Send(); errors.Join(err, sent) != nil {
			t.Fatal(err, sent)
		}
	}
}
