package ds_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type block struct {
	Data []byte `uplink:"max=1100"`
}

type ball struct {
	Position schema.Vec3 `uplink:"resolution=0.001"`
	Name     []byte      `uplink:"max=16"`
}

// TestSmallPaths plays on paths that carry 576 bytes of IP or more, from the start or from a moment
// in the session on: large calls, reliable messages, unreliable messages, snapshots of 300 objects
// and a stream all arrive. Both ends know the size, and log that it is small.
func TestSmallPaths(t *testing.T) {
	for _, mtu := range []int{0, 9000, 1500, 1280, 1228, 1210, 1200, 1028, 928, 576} {
		if testing.Short() && mtu != 0 && mtu != 1200 && mtu != 576 {
			continue
		}
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d shrinks=%v", mtu, later), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playOnPath(t, mtu, later) })
			})
		}
	}
}

func playOnPath(t *testing.T, mtu int, later bool) {
	large := simnet.Config{Delay: 20 * ms, Seed: 3}
	small := large
	small.MTU = mtu
	first := small
	if later {
		first = large
	}
	network := uplinktest.NewNetwork(t, first, first)
	var logs [2]uplinktest.Record
	logger := func(i int) *slog.Logger { return slog.New(slog.NewTextHandler(&logs[i], nil)) }

	const calls, messages, stream, objects = 90, 9, 100_000, 300
	var up struct{ calls, reliable, unreliable, stream atomic.Int64 }
	var world *ds.World[ball]
	player := make(chan *ds.Player, 1)
	server := serve(t, network, ds.Config{
		Logger: logger(0),
		Joined: func(p *ds.Player) {
			_, err := world.Offer(p)
			uplinktest.Must(t, err)
			player <- p
		},
		OnMessage: func(*ds.Player, []byte) { up.reliable.Add(1) },
		Hooks: ds.Hooks{
			OnUnreliable: func(*ds.Player, []byte) { up.unreliable.Add(1) },
			OnStream: func(_ *ds.Player, r transport.StreamReader) {
				b, _ := io.ReadAll(r)
				up.stream.Store(int64(len(b)))
			},
		},
	}, handles("Block", func(*ds.Player, ds.Frame[block]) { up.calls.Add(1) }), func(s *ds.Server) (err error) {
		world, err = ds.NewWorld(s, "balls", ds.WorldConfig[ball]{TickHz: 60, SendHz: 20})
		return err
	})

	var down struct{ reliable, snapshots atomic.Int64 }
	conn := uplinktest.Dial(t, network, client.Config{Logger: logger(1), OnMessage: func([]byte) { down.reliable.Add(1) }})
	p := <-player
	call, err := client.Bind[block](t.Context(), conn, "Block", client.BindConfig{RateHz: 30})
	uplinktest.Must(t, err)
	_, err = client.SubscribeSnapshots(t.Context(), conn, "balls", client.SnapshotConfig[ball]{Handle: func(u *client.Snapshot[ball]) {
		if len(u.Objects) == objects {
			down.snapshots.Add(1)
		}
	}})
	uplinktest.Must(t, err)
	tick := uint64(0)
	polling(t, time.Second/20, func() {
		uplinktest.Must(t, world.Begin(tick))
		for i := range uint64(objects) {
			b := ball{Position: schema.Vec3{X: float64(tick*(i+3)%5000) / 7, Y: float64(i)}, Name: fmt.Append(nil, tick*i%977)}
			uplinktest.Must(t, world.Put(uint16(i), 0, &b))
		}
		_, err := world.Send()
		uplinktest.Must(t, err)
		tick += 3
	})
	time.Sleep(4 * time.Second)
	if later {
		uplinktest.Must(t, network.Set(small, small))
		time.Sleep(1500 * ms)
	}
	down.snapshots.Store(0)
	data := bytes.Repeat([]byte("incompressible"), 100)[:1090]
	for i := range calls {
		for j := range data {
			data[j] = byte((i + j) * 7919 >> 3)
		}
		_, err := call.Send(&block{data})
		uplinktest.Must(t, err)
		if i%(calls/messages) == 0 {
			uplinktest.Must(t, conn.SendReliable(make([]byte, 8000)))
			uplinktest.Must(t, p.SendReliable(make([]byte, 8000)))
			uplinktest.Must(t, conn.SendUnreliable(make([]byte, 1100)))
		}
		time.Sleep(time.Second / 30)
	}
	w, err := conn.OpenStream(t.Context(), "file")
	uplinktest.Must(t, err)
	_, err = w.Write(make([]byte, stream))
	uplinktest.Must(t, err)
	uplinktest.Must(t, w.Close())
	synctest.Wait()
	if n := up.calls.Load(); n != calls {
		t.Errorf("%d of %d calls arrived", n, calls)
	}
	if n := up.reliable.Load(); n != messages {
		t.Errorf("%d of %d reliable messages to the server arrived", n, messages)
	}
	if n := down.reliable.Load(); n != messages {
		t.Errorf("%d of %d reliable messages to the client arrived", n, messages)
	}
	if n := up.unreliable.Load(); n != messages {
		t.Errorf("%d of %d unreliable messages arrived", n, messages)
	}
	if n := up.stream.Load(); n != stream {
		t.Errorf("%d of %d bytes of the stream arrived", n, stream)
	}
	if n := down.snapshots.Load(); n < 3*20 {
		t.Errorf("%d snapshots arrived in more than 3 s", n)
	}
	atServer, atClient := p.Stats().Transport.MaxDatagram, conn.Stats().Transport.MaxDatagram
	isSmall := mtu != 0 && mtu < 1228
	if most := mtu - 28; isSmall && (atServer > most || atClient > most || atServer < 548 || atClient < 548) || !isSmall && (atServer != 0 && atServer < 1200 || atClient < 1200) {
		t.Errorf("path size %d at the server, %d at the client", atServer, atClient)
	}
	for i, n := range []uint64{server.Stats().Transport.SmallPaths, conn.Stats().Transport.SmallPaths} {
		if logged := logs[i].Count("small path") > 0; logged != isSmall || (n != 0) != isSmall {
			t.Errorf("end %d: %d times small, logged %v", i, n, logged)
		}
	}
}
