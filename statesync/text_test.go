package statesync_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// turretSchema has angles that turn by a velocity and by themselves, and byte strings.
func turretSchema(t testing.TB) *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Place", Class: schema.ClassNumber, N: 2, Lo: -5000, Hi: 5000},
		snapshot.Field{Name: "Heading", Class: schema.ClassAngle, N: 1, Lo: -180, Hi: 179},
		snapshot.Field{Name: "Aim", Class: schema.ClassAngle, N: 2, Hi: 1<<16 - 1},
		snapshot.Field{Name: "Turning", Class: schema.ClassNumber, N: 1, Lo: -900, Hi: 900},
		snapshot.Field{Name: "Label", Class: schema.ClassBytes, N: 4, Hi: 11},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var turretConfig = statesync.Config{Budget: 120, Velocities: []schema.Velocity{{Field: "Heading", Of: "Turning", PerTick: .5}}}

// turrets are n objects of the schema after some ticks: integers alone.
func turrets(t testing.TB, s *snapshot.Schema, n int, tick int32) *snapshot.Set {
	set := s.NewSet()
	row := make([]int32, s.Components())
	for i := range int32(n) {
		clear(row)
		turning := (i*7+tick/40)%23 - 11
		row[0], row[1] = i*50, (tick*3+i*11)%4000
		row[2] = ((tick*turning/2+i*30)%360+360)%360 - 180
		row[3], row[4] = (tick*i*37)&0xffff, (5-tick*200)&0xffff
		row[5] = turning
		label := fmt.Sprintf("n%d", tick/30*i)
		row[6] = int32(len(label))
		for k := range len(label) {
			row[7+k/4] |= int32(uint32(label[k]) << (8 * (k % 4)))
		}
		if err := set.Add(snapshot.Object{ID: uint16(i)}, row); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// TestAnglesAndBytes has angles come over the end of a turn, and strings, whatever is lost.
func TestAnglesAndBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		turret := turretSchema(t)
		s, r := pair(t, turret, turretConfig)
		lost := rapid.SliceOfN(rapid.Bool(), 64, 64).Draw(rt, "lost")
		tick := rapid.Int32Range(0, 500).Draw(rt, "start")
		for n := range 128 {
			tick += 1 + int32(n/100*n%3)
			set := turrets(t, turret, 12, tick)
			for id := range uint16(12) {
				_ = s.Prioritize(id, 1)
			}
			out, info, err := s.Append(nil, int64(tick), set)
			if err != nil {
				rt.Fatal(err)
			}
			f := launch(rt, out, info, set)
			if lost[n%64] {
				continue
			}
			u, err := r.Decode(out)
			if err != nil {
				rt.Fatal(err)
			}
			f.land(rt, u)
			if err := s.Ack(r.Ack()); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// TestGoldenAngles has packets with angles and strings be the same bytes as ever, and an angle that turns on over the end
// of a turn cost no more than elsewhere.
func TestGoldenAngles(t *testing.T) {
	turret := turretSchema(t)
	s, r := pair(t, turret, turretConfig)
	var lines []string
	for tick := range int32(200) {
		set := turrets(t, turret, 6, tick)
		for id := range uint16(6) {
			_ = s.Prioritize(id, 1)
		}
		out, _, err := s.Append(nil, int64(tick), set)
		if err != nil {
			t.Fatal(err)
		}
		if tick > 120 && tick%30 != 0 && len(out) > 60 {
			t.Errorf("packet %d takes %d bytes", tick, len(out))
		}
		sum := sha256.Sum256(out)
		lines = append(lines, fmt.Sprintf("%d %s", len(out), hex.EncodeToString(sum[:6])))
		if _, err := r.Decode(out); err != nil {
			t.Fatal(err)
		}
		if err := s.Ack(r.Ack()); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "testdata/angles.golden", strings.Join(lines, "\n")+"\n")
}

func golden(t *testing.T, name, got string) {
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("the packets changed: the wire is another, or not the same on every processor (-update writes them anew)")
	}
}

type tank struct {
	Place   schema.Vec2  `uplink:"resolution=0.01,min=-50,max=50"`
	Heading schema.Angle `uplink:"bits=12"`
	Label   []byte       `uplink:"max=9"`
}

// TestRoundBytes has a struct with angles and byte strings round, and come back from its row.
func TestRoundBytes(t *testing.T) {
	q := quantizer[tank](t)
	v := tank{Place: schema.Vec2{X: 1.234, Y: -5}, Heading: 359.99, Label: []byte("cat")}
	if err := q.Round(&v); err != nil {
		t.Fatal(err)
	}
	set := q.Schema().NewSet()
	if err := q.Add(set, snapshot.Object{}, &v); err != nil {
		t.Fatal(err)
	}
	var got tank
	if err := q.Restore(&got, set.Row(0)); err != nil || got.Place != v.Place || got.Heading != v.Heading || !bytes.Equal(got.Label, []byte("cat")) {
		t.Errorf("%+v came as %+v: %v", v, got, err)
	}
	if q.Restore(&got, set.Row(0)[:2]) == nil {
		t.Error("a short row was taken")
	}
}

// TestLargeObject: an object that the budget has no room for does not hold up the others, however long it is first in line, and is sent
// as soon as there is room.
func TestLargeObject(t *testing.T) {
	turret, err := snapshot.NewSchema(
		snapshot.Field{Name: "Place", Class: schema.ClassNumber, N: 1, Lo: -1000, Hi: 1000},
		snapshot.Field{Name: "Label", Class: schema.ClassBytes, N: 51, Hi: 200},
	)
	if err != nil {
		t.Fatal(err)
	}
	s, r := pair(t, turret, statesync.Config{Budget: 100})
	set, updates := turret.NewSet(), map[uint16]int{}
	for tick := range int64(200) {
		set.Reset()
		for id := range uint16(20) {
			row := make([]int32, turret.Components())
			row[0] = int32(tick*int64(id)) % 1000
			if id == 7 {
				row[1] = 200
				for i := range row[2:] {
					row[2+i] = int32(tick)*0x1234567 + int32(i)*0x7654321
				}
			}
			if err := set.Add(snapshot.Object{ID: id}, row); err != nil {
				t.Fatal(err)
			}
			p := 1.
			if id == 7 {
				p = 1000
			}
			_ = s.Prioritize(id, p)
		}
		if tick == 150 {
			if err := s.SetBudget(400); err != nil {
				t.Fatal(err)
			}
		}
		out, _, err := s.Append(nil, tick, set)
		if err != nil {
			t.Fatalf("tick %d: %v", tick, err)
		}
		u, err := r.Decode(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range u.Objects {
			updates[o.ID]++
		}
		if err := s.Ack(r.Ack()); err != nil {
			t.Fatal(err)
		}
		if n := updates[7]; tick < 150 && n != 0 || tick >= 152 && n == 0 {
			t.Fatalf("tick %d: the large one was sent %d times", tick, n)
		}
	}
	for id, n := range updates {
		if n < 40 {
			t.Errorf("object %d was sent %d times", id, n)
		}
	}
	if len(updates) != 20 {
		t.Errorf("%d objects were sent", len(updates))
	}
}
