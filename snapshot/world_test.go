package snapshot_test

import (
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/snapshot"
)

func TestBadConfig(t *testing.T) {
	for _, c := range []snapshot.Config{{Ring: 15}, {Ring: 65}, {Ring: -1}, {CheckEvery: -1}, {CheckEvery: 1 << 16}} {
		if _, err := c.NewWorld(testSchema(t), nil); err == nil {
			t.Errorf("%+v was taken for a world", c)
		}
		if _, err := c.NewDecoder(testSchema(t), nil); err == nil {
			t.Errorf("%+v was taken for a decoder", c)
		}
	}
}

// TestEncodersShareASet encodes each snapshot for two players at the same time. The race detector
// reports an encoder that writes the set.
func TestEncodersShareASet(t *testing.T) {
	sc := newScene(t, 5, 60)
	world := snapshot.NewWorld(sc.schema, nil)
	encoders := []*snapshot.Encoder{snapshot.NewEncoder(sc.schema, world), snapshot.NewEncoder(sc.schema, world)}
	for seq := range uint16(40) {
		sc.step()
		sc.fill(t, world.Begin())
		var work sync.WaitGroup
		for _, e := range encoders {
			work.Go(func() {
				if _, _, err := e.Append(nil, 1<<16); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		for _, e := range encoders {
			must(t, e.Ack(snapshot.Ack{Newest: seq}))
		}
	}
}
