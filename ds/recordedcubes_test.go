package ds_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// recordedCube is a recorded cube as a game would declare it.
type recordedCube struct {
	Rotation    schema.Quat `uplink:"bits=10" interpolate:"orientation"`
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-256,max=255.99" interpolate:"position"`
	Interacting bool
}

// TestRecordedCubes sends 901 recorded cubes at 60 Hz over a link with 5 % loss, 100 ms round trip
// and jitter: each snapshot that comes is what was sent. The client does not know the initial
// state.
func TestRecordedCubes(t *testing.T) {
	frames, err := cubes.Load("../testdata/traces/cubes_delta_data_120.bin.gz")
	uplinktest.Must(t, err)
	typ, err := snapshot.Compile[recordedCube]("cubes")
	uplinktest.Must(t, err)
	sets := make([]*snapshot.Set, len(frames))
	put := func(n int, put func(id uint16, generation uint8, v *recordedCube) error) error {
		for i := range frames[n] {
			c := &frames[n][i]
			if err := put(uint16(i), 0, &recordedCube{c.Orientation(), c.Meters(), c.Interacting != 0}); err != nil {
				return err
			}
		}
		return nil
	}
	for n := range frames {
		sets[n] = typ.Schema().NewSet()
		uplinktest.Must(t, put(n, func(id uint16, _ uint8, v *recordedCube) error {
			return typ.Add(sets[n], snapshot.Object{ID: id}, v)
		}))
	}
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		var world *ds.World[recordedCube]
		joined := func(p *ds.Player) {
			_, err := world.Offer(p)
			uplinktest.Must(t, err)
		}
		uplinktest.Serve(t, network, ds.Config{Joined: joined}, func(s *ds.Server) (err error) {
			world, err = ds.NewWorld(s, "cubes", ds.WorldConfig[recordedCube]{
				Initial: func(f func(uint16, uint8, *recordedCube) error) error { return put(0, f) },
			})
			return err
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		came := 0
		got := typ.Schema().NewSet()
		check := typ.Clone()
		v, err := client.SubscribeSnapshots(t.Context(), conn, "cubes", client.SnapshotConfig[recordedCube]{Handle: func(s *client.Snapshot[recordedCube]) {
			came++
			got.Reset()
			for i, key := range s.IDs {
				id, g := client.SplitID(key)
				uplinktest.Must(t, check.Add(got, snapshot.Object{ID: id, Generation: g}, &s.Objects[i]))
			}
			if !got.Equal(sets[s.Tick]) {
				t.Errorf("tick %d is not what was sent", s.Tick)
			}
		}})
		uplinktest.Must(t, err)
		for n := 1; n < len(frames); n++ {
			uplinktest.Must(t, world.Begin(uint64(n)))
			uplinktest.Must(t, put(n, world.Put))
			world.Commit()
			_, err := world.Send()
			uplinktest.Must(t, err)
			time.Sleep(time.Second / 60)
		}
		settle(time.Second)
		st, cl := world.Stats(), v.Stats()
		t.Logf("sent %+v, got %+v", st, cl)
		if came < 100 || uint64(came) != cl.Messages || cl.InitialBytes < 1000 || cl.Malformed+cl.BaselineMissing != 0 {
			t.Errorf("%d came of %+v, counted %+v", came, st, cl)
		}
	})
}
