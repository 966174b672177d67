package snapshot_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// everything has fields of every kind.
type everything struct {
	Place   schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100,velocity=Speed"`
	Speed   schema.Vec3 `uplink:"resolution=0.1"`
	Wide    float64     `uplink:"resolution=1,min=-2147483647,max=2147483647"`
	Flat    schema.Vec2 `uplink:"resolution=0.5"`
	Turn    schema.Quat `uplink:"bits=11"`
	Aim     schema.Rotator
	Heading schema.Angle   `uplink:"bits=10"`
	Normal  schema.UnitVec `uplink:"bits=9"`
	Joints  [4]float32     `uplink:"resolution=0.1"`
	Open    bool
	Locks   [3]bool
	Small   int8
	Time    uint32
	Score   int32
	Owner   uint64
	Balance int64
	Buttons uint16 `uplink:"kind=bits,width=12"`
	Odd     uint64 `uplink:"width=40"`
	Key     [5]byte
	Name    string         `uplink:"max=9"`
	Blob    []byte         `uplink:"max=33"`
	Carried map[string]int `uplink:"max=40"`
}

func drawEverything(t *rapid.T) *everything {
	f := func(lo, hi float64) float64 { return rapid.Float64Range(lo, hi).Draw(t, "number") }
	v := &everything{
		Place: schema.Vec3{X: f(-100, 100), Y: f(-100, 100), Z: f(-100, 100)},
		Speed: schema.Vec3{X: f(-10, 10), Y: f(-10, 10), Z: f(-10, 10)},
		Wide:  f(-2147483647, 2147483647), Flat: schema.Vec2{X: f(-5, 5), Y: f(-5, 5)},
		Turn: schema.Quat{X: f(-1, 1), Y: f(-1, 1), Z: f(-1, 1), W: 1},
		Aim:  schema.Rotator{Pitch: f(-400, 400), Yaw: f(-400, 400), Roll: f(-400, 400)}, Heading: schema.Angle(f(-180, 180)),
		Normal: schema.UnitVec{X: f(-1, 1), Y: f(-1, 1), Z: 1}, Joints: [4]float32{float32(f(-9, 9)), 1, 2, float32(f(-9, 9))},
		Open: rapid.Bool().Draw(t, "open"), Locks: [3]bool{rapid.Bool().Draw(t, "lock"), true, false},
		Small: rapid.Int8().Draw(t, "small"), Time: rapid.Uint32().Draw(t, "time"), Score: rapid.Int32().Draw(t, "score"),
		Owner: rapid.Uint64().Draw(t, "owner"), Balance: rapid.Int64().Draw(t, "balance"),
		Buttons: rapid.Uint16Max(1<<12-1).Draw(t, "buttons"), Odd: rapid.Uint64Max(1<<40-1).Draw(t, "odd"),
		Name: rapid.StringN(0, -1, 9).Draw(t, "name"), Blob: rapid.SliceOfN(rapid.Byte(), 0, 33).Draw(t, "blob"),
		Carried: map[string]int{"gold": rapid.IntRange(0, 9).Draw(t, "gold")},
	}
	copy(v.Key[:], rapid.SliceOfN(rapid.Byte(), 5, 5).Draw(t, "key"))
	return v
}

// TestEveryKind converts values of every kind to rows and back, and codes them against arbitrary
// baselines.
func TestEveryKind(t *testing.T) {
	typ, err := snapshot.Compile[everything]("Everything")
	must(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		world := snapshot.NewHistory(typ.Schema(), nil)
		enc, dec := newSender(world), snapshot.NewDecoder(typ.Schema(), nil)
		var v *everything
		for range rapid.IntRange(1, 12).Draw(rt, "snapshots") {
			if v == nil || rapid.Bool().Draw(rt, "change") {
				v = drawEverything(rt)
			}
			set := world.Begin()
			must(rt, typ.Add(set, snapshot.Object{ID: 7}, v))
			row := make([]int32, typ.Schema().Components())
			copy(row, set.Row(0))
			var back everything
			must(rt, typ.Restore(&back, row))
			if back.Name != v.Name || string(back.Blob) != string(v.Blob) || back.Owner != v.Owner || back.Balance != v.Balance ||
				back.Odd != v.Odd || back.Time != v.Time || back.Score != v.Score || back.Key != v.Key || back.Locks != v.Locks ||
				back.Small != v.Small || back.Carried["gold"] != v.Carried["gold"] || math.Abs(back.Place.X-v.Place.X) > 0.0051 {
				rt.Fatalf("%+v came back as %+v", v, back)
			}
			out, _, err := enc.send(nil, 1<<16)
			must(rt, err)
			_, got, err := dec.Decode(out)
			must(rt, err)
			if !got.Equal(set) {
				rt.Fatalf("%v came as %v", set.Row(0), got.Row(0))
			}
			if rapid.Bool().Draw(rt, "ack") {
				_, err = enc.Ack(dec.Ack())
				must(rt, err)
			}
		}
	})
}

func TestTypeNamesObjectAndField(t *testing.T) {
	typ, err := snapshot.Compile[everything]("Everything")
	must(t, err)
	set := typ.Schema().NewSet()
	v := &everything{Turn: schema.Quat{W: 1}, Normal: schema.UnitVec{X: 1}, Name: "more than nine"}
	err = typ.Add(set, snapshot.Object{ID: 300}, v)
	var re *schema.RangeError
	if !errors.As(err, &re) || re.Field != "Name" || set.Len() != 0 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"object 300", "at most 9"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestTypeNamesWhatCannotBe(t *testing.T) {
	type long struct {
		Open bool
		Text string `uplink:"max=4000"`
	}
	type channel struct{ C chan int }
	_, longErr := snapshot.Compile[long]("Long")
	_, manyErr := snapshot.Compile[struct{ Bits [33]uint16 }]("Many")
	_, chanErr := snapshot.Compile[channel]("Channel")
	for err, want := range map[error]string{longErr: "Text", manyErr: "33 fields", chanErr: `"C"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestTypeAllocations(t *testing.T) {
	type crate struct {
		Place schema.Vec3 `uplink:"resolution=0.01"`
		Turn  schema.Quat
		Tag   []byte `uplink:"max=8"`
	}
	typ, err := snapshot.Compile[crate]("Crate")
	must(t, err)
	set, v := typ.Schema().NewSet(), crate{Turn: schema.Quat{W: 1}, Tag: []byte("abc")}
	once := func() {
		set.Reset()
		must(t, typ.Add(set, snapshot.Object{ID: 1}, &v))
		must(t, typ.Get(&v, set, 0))
	}
	once()
	if n := allocs.PerRun(100, once); n != 0 {
		t.Errorf("%g allocations an object", n)
	}
}

func TestBadSets(t *testing.T) {
	s := testSchema(t)
	set := s.NewSet()
	row := [11]int32{0, 0, 0, 0, 0, 0, 0, 0, -1, -1, 0}
	for id := range snapshot.MaxObjects {
		must(t, set.Add(snapshot.Object{ID: uint16(id)}, row[:]))
	}
	if set.Add(snapshot.Object{ID: 60000}, row[:]) == nil {
		t.Error("more than MaxObjects were taken")
	}
	set.Reset()
	must(t, set.Add(snapshot.Object{ID: 5}, row[:]))
	outside := row
	outside[6] = 5001
	for _, c := range []struct {
		id   uint16
		row  []int32
		want string
	}{
		{5, row[:], "object 5 after object 5"},
		{4, row[:], "object 4 after object 5"},
		{6, row[:10], "10 components"},
		{300, outside[:], `snapshot: object 300: field "Position": component 5001, want -5000 to 5000`},
	} {
		if err := set.Add(snapshot.Object{ID: c.id}, c.row); err == nil || !strings.Contains(err.Error(), c.want) || set.Len() != 1 {
			t.Errorf("got %v, want %q in it", err, c.want)
		}
	}
}

// TestEncodersShareASet encodes each snapshot for two players at the same time. The race detector
// reports an encoder that writes the set.
func TestEncodersShareASet(t *testing.T) {
	sc := newScene(t, 5, 60)
	world := snapshot.NewHistory(sc.schema, nil)
	encoders := []*sender{newSender(world), newSender(world)}
	for seq := range uint16(40) {
		sc.step()
		sc.fill(t, world.Begin())
		var work sync.WaitGroup
		for _, e := range encoders {
			work.Go(func() {
				if _, _, err := e.send(nil, 1<<16); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		for _, e := range encoders {
			_, err := e.Ack(snapshot.Ack{Newest: seq})
			must(t, err)
		}
	}
}
