package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// note has fields that can share memory with the value restored into the same place before.
type note struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"position"`
	Name     string      `uplink:"max=8"`
	Scores   []int8      `uplink:"max=8"`
	scribble
}

type scribble struct {
	Text []byte `uplink:"max=8"`
}

// TestSampleAliasing checks that newer snapshots do not change a sample of an older one, byte
// strings included.
func TestSampleAliasing(t *testing.T) {
	typ, err := snapshot.Compile[note]("notes")
	must(t, err)
	r, err := newSnapshotReceiver("notes", &SnapshotConfig[note]{Interpolate: &interpolate.Config{}})
	must(t, err)
	must(t, r.Begin(&replication.Offer{Name: "notes", Codec: replication.SnapshotCodec, RateHz: 20, TickHz: 20}, nil))
	now := time.Now()
	receive := func(tick int) {
		set := typ.Schema().NewSet()
		label := fmt.Sprint("at ", tick)
		v := note{Name: label, Scores: []int8{int8(tick)}, scribble: scribble{Text: []byte(label)}}
		must(t, typ.Add(set, snapshot.Object{ID: 1}, &v))
		r.receive(uint64(tick), set, now.Add(time.Duration(tick)*50*time.Millisecond))
	}
	for tick := range 10 {
		receive(tick)
	}
	var shown interpolate.Sample[note]
	if !r.sample(now.Add(450*time.Millisecond), &shown) {
		t.Fatal("nothing is shown")
	}
	tick := int(shown.Time / (50 * time.Millisecond))
	for range 2 {
		want, got := fmt.Sprint("at ", tick), &shown.Objects[0]
		if tick >= 9 || got.Name != want || string(got.Text) != want || got.Scores[0] != int8(tick) {
			t.Errorf("%+v with %q is shown, want that of tick %d", got, got.Text, tick)
		}
		receive(10) // while the caller still uses the sample
	}
}
