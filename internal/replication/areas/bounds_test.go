package areas

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// TestGroupEncodings checks that a group is encoded at most eight times in a snapshot, whatever
// baselines clients have.
func TestGroupEncodings(t *testing.T) {
	testWorld := newTestWorld(1, 2, 2, 40, 0)
	for range snapshot.Ring {
		testWorld.step()
	}
	n := testWorld.world.Next() - 1
	tried := 0
	for _, g := range testWorld.world.groups {
		if g.first > 0 {
			continue
		}
		tried++
		encoded := 0
		for d := range maxDistance {
			if g.encode(n, snapshot.Baseline{Distance: d, Empty: d == 0}) != nil {
				encoded++
			}
			_ = g.encodeAny(n, 1<<maxDistance)
		}
		if encoded > maxEncodings || g.count > maxEncodings || len(g.encodings) > maxEncodings {
			t.Errorf("%d encodings, %d are kept", encoded, len(g.encodings))
		}
	}
	if tried == 0 {
		t.Error("no group is as old as the world")
	}
	if got, limit := testWorld.world.Encodes(), maxEncodings*len(testWorld.world.groups); got > limit {
		t.Errorf("%d encodings, want at most %d", got, limit)
	}
}

// TestViewIsBounded checks the memory of a view of more groups than a message can contain, and that
// the others are sent once there is room.
func TestViewIsBounded(t *testing.T) {
	const areas = maxMembers + 100
	world, builder := NewHistory(), Builder{}
	s, err := snapshot.NewSchema(snapshot.Field{Name: "N", Class: schema.ClassInteger, N: 1, Hi: 9})
	if err != nil {
		t.Fatal(err)
	}
	typ := world.AddType(s)
	var all []area.ID
	for a := range area.ID(areas) {
		all = append(all, a+1)
	}
	var v View
	step := func() {
		world.Begin()
		for id := range uint16(areas) {
			if err := world.Put(typ, snapshot.Object{ID: id}, []int32{3}, area.ID(id)+1); err != nil {
				t.Fatal(err)
			}
		}
		world.Commit()
		builder.Append(nil, world, &v, snapshot.Baseline{}, Limits{Enter: 600, Hold: 6})
	}
	v.See(all)
	step()
	if n, size := cap(v.members), unsafe.Sizeof(member{}); len(v.members) != maxMembers || n > 2*maxMembers || size > 24 {
		t.Errorf("%d of %d members of %d bytes", len(v.members), n, size)
	}
	v.See(all[areas-200:])
	for range snapshot.Ring + 1 {
		step()
	}
	seen := 0
	for _, m := range v.members {
		if m.sees {
			seen++
		}
	}
	if seen != 200 || len(v.members) != maxMembers {
		t.Errorf("the view has %d of 200 groups", seen)
	}
}

// TestGroupSize checks that a decoder accepts the largest group that a world makes, and refuses a
// larger one.
func TestGroupSize(t *testing.T) {
	for _, size := range []int{maxGroup, maxGroup + 1} {
		world := NewHistory()
		s, err := snapshot.NewSchema(snapshot.Field{Name: "N", Class: schema.ClassInteger, N: 1, Hi: 9})
		if err != nil {
			t.Fatal(err)
		}
		typ := world.AddType(s)
		world.Begin()
		if err := world.Put(typ, snapshot.Object{}, []int32{1}, 5); err != nil {
			t.Fatal(err)
		}
		for id := 1; id < size; id++ {
			if err := world.groups[0].content.Put(snapshot.Object{ID: uint16(id)}, []int32{2}); err != nil {
				t.Fatal(err)
			}
		}
		world.Commit()
		var v View
		v.See([]area.ID{5})
		var builder Builder
		b := builder.Append(nil, world, &v, snapshot.Baseline{}, Limits{Enter: 1 << 16, Hold: 6})
		d := NewDecoder(s)
		_, _, err = d.Decode(b)
		if accepted := err == nil && d.Shown(0).Len() == size; accepted != (size == maxGroup) || !accepted && !errors.Is(err, snapshot.ErrMalformed) {
			t.Errorf("a group of %d objects: %v, %d are shown", size, err, d.Shown(0).Len())
		}
	}
}

// TestViewOfManyObjects checks that a client that sees more objects of a type than it can show is
// shown as many groups as it can, and the others when some of these have left.
func TestViewOfManyObjects(t *testing.T) {
	const size, groups = 200, MaxObjects/200 + 5
	s, err := snapshot.NewSchema(snapshot.Field{Name: "N", Class: schema.ClassInteger, N: 1, Hi: 9})
	if err != nil {
		t.Fatal(err)
	}
	world, builder, d := NewHistory(), Builder{}, NewDecoder(s)
	typ := world.AddType(s)
	var v View
	step := func(tick int) int {
		world.Begin()
		for id := range uint16(size * groups) {
			if err := world.Put(typ, snapshot.Object{ID: id}, []int32{int32(tick % 9)}, 1+area.ID(id/size)); err != nil {
				t.Fatal(err)
			}
		}
		world.Commit()
		base := snapshot.Baseline{}
		if _, bare := v.Receipts.Baselines(world.Next()-1, 1); bare&2 != 0 {
			base.Distance = 1
		}
		if _, _, err := d.Decode(builder.Append(nil, world, &v, base, Limits{Enter: 1 << 14, Hold: 6})); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Ack(d.Ack()); err != nil {
			t.Fatal(err)
		}
		return d.Shown(0).Len()
	}
	var all []area.ID
	for a := range area.ID(groups) {
		all = append(all, a+1)
	}
	v.See(all)
	shown := 0
	for tick := range 20 {
		shown = step(tick)
	}
	if want := MaxObjects / size * size; shown != want {
		t.Errorf("%d objects are shown, want %d", shown, want)
	}
	v.See(all[10:])
	for tick := range 20 {
		shown = step(tick)
	}
	if want := (groups - 10) * size; shown != want {
		t.Errorf("then %d objects are shown, want %d", shown, want)
	}
}

// TestSlotTwice decodes messages that have two groups of different types in one slot, as no server
// sends them.
func TestSlotTwice(t *testing.T) {
	number, err := snapshot.NewSchema(snapshot.Field{Name: "N", Class: schema.ClassInteger, N: 1, Hi: 9})
	if err != nil {
		t.Fatal(err)
	}
	flag, err := snapshot.NewSchema(snapshot.Field{Name: "F", Class: schema.ClassInteger, N: 1, Hi: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(number, flag)
	message := func(n uint64, distance int, directory func(w *bitio.Writer), parts ...byte) error {
		var w bitio.Writer
		w.Reset(appendHeader(nil, n, distance))
		directory(&w)
		_, _, err := d.Decode(append(w.Bytes(), parts...))
		return err
	}
	if err := message(2, 0, func(w *bitio.Writer) {
		for typ := range uint64(2) {
			w.WriteBits(entryKeyframe, entryBits)
			writeCount(w, 5, slotBits)
			writeCount(w, typ, typeBits)
			writeCount(w, 0, sizeBits)
			w.WriteBits(0, 1)
		}
		w.WriteBits(entryEnd, entryBits)
	}); err != nil {
		t.Fatal(err)
	}
	// The number is a multiple of checkEvery: each part begins with the hash of its baseline. An
	// empty group follows.
	const unchanged = 0xf8
	hash := number.NewSet().Check()
	err = message(64, 62, func(w *bitio.Writer) {
		for range 2 {
			w.WriteBits(memberChanged, 1)
			writeCount(w, 3, sizeBits)
			w.WriteBits(0, 1)
		}
		w.WriteBits(entryEnd, entryBits)
	}, byte(hash), byte(hash>>8), unchanged, byte(hash), byte(hash>>8), unchanged)
	if !errors.Is(err, snapshot.ErrBaselineMissing) {
		t.Errorf("%v, want a missing baseline", err)
	}
}

// TestDirectoryPadding verifies that a message is refused if the bits between the directory and the
// parts are not zero, also without a part.
func TestDirectoryPadding(t *testing.T) {
	s, err := snapshot.NewSchema(snapshot.Field{Name: "N", Class: schema.ClassInteger, N: 1, Hi: 9})
	if err != nil {
		t.Fatal(err)
	}
	empty := appendHeader(nil, 0, 0)
	for _, c := range []struct {
		after []byte
		want  error
	}{
		{[]byte{0}, nil}, {[]byte{4}, snapshot.ErrMalformed}, {[]byte{128, 1}, snapshot.ErrMalformed}, {[]byte{0, 0}, snapshot.ErrMalformed},
	} {
		if _, _, err := NewDecoder(s).Decode(append(empty[:len(empty):len(empty)], c.after...)); !errors.Is(err, c.want) {
			t.Errorf("a directory of %x: %v, want %v", c.after, err, c.want)
		}
	}
}

// TestRepeatedGroups decodes messages that show one group of an earlier message many times: at most
// maxMembers groups, and MaxObjects objects of each type.
func TestRepeatedGroups(t *testing.T) {
	s, err := snapshot.NewSchema(snapshot.Field{Name: "N", Class: schema.ClassInteger, N: 1, Hi: 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size, times int
		refused     bool
	}{
		{200, MaxObjects / 200, false}, {200, MaxObjects/200 + 1, true}, {1, maxMembers, false}, {1, maxMembers + 1, true},
	} {
		world, builder, d := NewHistory(), Builder{}, NewDecoder(s)
		typ := world.AddType(s)
		world.Begin()
		for id := range uint16(c.size) {
			if err := world.Put(typ, snapshot.Object{ID: id}, []int32{1}, 5); err != nil {
				t.Fatal(err)
			}
		}
		world.Commit()
		var v View
		v.See([]area.ID{5})
		if _, _, err := d.Decode(builder.Append(nil, world, &v, snapshot.Baseline{}, Limits{Enter: 1 << 16, Hold: 6})); err != nil {
			t.Fatal(err)
		}
		var bits bitio.Writer
		bits.Reset(appendHeader(nil, 1, 1))
		bits.WriteBits(memberLeft, 3)
		for range c.times {
			bits.WriteBits(entryShown, entryBits)
			writeCount(&bits, 0, slotBits)
			bits.WriteBits(1, distanceBits)
			bits.WriteBits(0, 1)
		}
		bits.WriteBits(entryEnd, entryBits)
		_, _, err := d.Decode(bits.Bytes())
		if errors.Is(err, snapshot.ErrMalformed) != c.refused || !c.refused && (err != nil || d.Shown(0).Len() != c.size) {
			t.Errorf("%d objects %d times: %v", c.size, c.times, err)
		}
	}
}
