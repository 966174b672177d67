//go:build linux && field

package field

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

const objects = 100

type thing struct {
	Position schema.Vec3 `uplink:"resolution=0.001"`
}

type block struct {
	Data []byte `uplink:"max=1100"`
}

// game is a server's world and a client, which use everything that travels between the two.
type game struct {
	server *ds.Server
	player *ds.Player
	conn   *client.Conn
	call   *client.Stream[block]
	events atomic.Int64 // of the state of the client

	// What arrived: bytes of streams, others by number.
	calls, reliableUp, reliableDown, snapshots, streamed atomic.Int64
}

// startGame starts a server at an address of a network, and a client. Both end with the test.
func startGame(t *testing.T, n *network, addr string) *game {
	t.Helper()
	addr = net.JoinHostPort(addr, "7777")
	g := &game{}
	players := make(chan *ds.Player, 16)
	var world *ds.World[thing]
	must(t, n.server.do(func() (err error) {
		g.server, err = ds.Listen(addr, ds.Config{
			Transport: ds.Transport{Insecure: true},
			Joined: func(p *ds.Player) {
				_, err := world.Offer(p)
				if err != nil {
					t.Error(err)
				}
				players <- p
			},
			OnMessage: func(*ds.Player, []byte) { g.reliableUp.Add(1) },
			Hooks: ds.Hooks{OnStream: func(_ *ds.Player, r transport.StreamReader) {
				n, _ := io.Copy(io.Discard, r)
				g.streamed.Add(n)
			}},
		})
		return err
	}))
	must(t, ds.Handle(g.server, "Block", func(*ds.Player, ds.Frame[block]) { g.calls.Add(1) }))
	world, err := ds.NewWorld(g.server, "things", ds.WorldConfig[thing]{TickHz: 60, SendHz: 20})
	must(t, err)
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() { _ = g.server.Serve(t.Context()) })
	done.Go(func() {
		ticker := time.NewTicker(time.Second / 20)
		defer ticker.Stop()
		for tick := uint64(0); ; tick += 3 {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			if err := world.Begin(tick); err != nil {
				t.Error(err)
			}
			for i := range uint64(objects) {
				o := thing{schema.Vec3{X: float64(tick*(i+3)%5000) / 7, Y: float64(tick*tick*i%977) / 3}}
				if err := world.Put(uint16(i), 0, &o); err != nil {
					t.Error(err)
				}
			}
			world.Commit()
			world.Send()
		}
	})
	g.conn, err = client.Dial(t.Context(), addr, client.Config{
		Transport: client.Transport{Insecure: true},
		Network:   n.client,
		OnMessage: func([]byte) { g.reliableDown.Add(1) },
		OnEvent: func(e client.Event) {
			if e.TickRate == 0 { // that is the machine's
				g.events.Add(1)
			}
		},
	})
	t.Cleanup(func() {
		if g.conn != nil {
			_ = g.conn.Close()
		}
		close(stop)
		_ = g.server.Close()
		done.Wait()
	})
	must(t, err)
	g.player = <-players
	g.call, err = client.Bind[block](t.Context(), g.conn, "Block", client.BindConfig{RateHz: 30})
	must(t, err)
	_, err = client.SubscribeSnapshots(t.Context(), g.conn, "things", client.SnapshotConfig[thing]{
		Handle: func(s *client.Snapshot[thing]) {
			if len(s.Objects) == objects {
				g.snapshots.Add(1)
			}
		},
	})
	must(t, err)
	return g
}

// exchange sends calls of 1,000 bytes, reliable messages of 8,000 bytes in both directions, and a
// stream for two seconds, and checks that of the calls and snapshots at least a share arrives, and
// of all else everything.
func (g *game) exchange(t *testing.T, share float64) {
	t.Helper()
	const calls, each = 60, 15
	before := [...]int64{g.calls.Load(), g.snapshots.Load(), g.reliableUp.Load(), g.reliableDown.Load(), g.streamed.Load()}
	data := make([]byte, 1000)
	stream, err := g.conn.OpenStream(t.Context(), "file")
	must(t, err)
	written := make(chan error, 1)
	go func() {
		_, err := stream.Write(make([]byte, 50_000))
		if err == nil {
			err = stream.Close()
		}
		written <- err
	}()
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	for i := range calls {
		<-ticker.C
		for j := range data {
			data[j] = byte((i + 1) * j * 7919 >> 3)
		}
		_, err := g.call.Send(&block{data})
		must(t, err)
		if i%each == 0 {
			must(t, g.conn.SendReliable(bytes.Repeat([]byte{1}, 8000)))
			must(t, g.player.SendReliable(bytes.Repeat([]byte{2}, 8000)))
		}
	}
	must(t, <-written)
	want := [...]int64{int64(share * calls), int64(share * 40), calls / each, calls / each, 50_000}
	names := [...]string{"calls", "snapshots", "reliable messages to the server", "reliable messages to the client", "bytes of the stream"}
	var got [5]int64
	uplinktest.Await(t, fmt.Sprint(want, " ", names), func() bool { // what is reliable may still be sent again
		got = [...]int64{g.calls.Load(), g.snapshots.Load(), g.reliableUp.Load(), g.reliableDown.Load(), g.streamed.Load()}
		complete := true
		for i := range got {
			got[i] -= before[i]
			complete = complete && got[i] >= want[i]
		}
		return complete
	}, func() any { return got })
}

// steady checks that the client stayed in its first session.
func (g *game) steady(t *testing.T) {
	t.Helper()
	if n := g.events.Load(); n > 1 {
		t.Errorf("%d events: %v", n, fmt.Sprint(g.conn.State(), g.conn.Err()))
	}
}
