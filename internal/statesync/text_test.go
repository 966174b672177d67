package statesync_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// turretSchema returns a schema of angles with and without a velocity, and byte strings.
func turretSchema(t testing.TB) *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Place", Class: schema.ClassNumber, N: 2, Lo: -5000, Hi: 5000},
		snapshot.Field{Name: "Heading", Class: schema.ClassAngle, N: 1, Lo: -180, Hi: 179},
		snapshot.Field{Name: "Aim", Class: schema.ClassAngle, N: 2, Hi: 1<<16 - 1},
		snapshot.Field{Name: "Turning", Class: schema.ClassNumber, N: 1, Lo: -900, Hi: 900},
		snapshot.Field{Name: "Label", Class: schema.ClassBytes, N: 4, Hi: 11},
	)
	must(t, err)
	return s
}

var turretConfig = statesync.Config{Budget: 120, Velocities: []schema.Velocity{{Field: "Heading", Of: "Turning", PerTick: schema.StepsPerTick(.5)}}}

// turrets returns n objects of turretSchema at a tick.
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
		must(t, set.Add(snapshot.Object{ID: uint16(i)}, row))
	}
	return set
}

// TestAnglesAndBytes sends angles that wrap around, and byte strings, with losses.
func TestAnglesAndBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		turret := turretSchema(t)
		s, r := pair(t, turret, turretConfig)
		lost := rapid.SliceOfN(rapid.Bool(), 64, 64).Draw(rt, "lost")
		tick := rapid.Int32Range(0, 500).Draw(rt, "start")
		for n := range 128 {
			tick += 1 + int32(n/100*n%3)
			set := turrets(t, turret, 12, tick)
			out, info := send(rt, s, int64(tick), set)
			f := launch(rt, out, info, set)
			if lost[n%64] {
				continue
			}
			u := decode(rt, r, out)
			f.land(rt, u)
			must(rt, s.Ack(r.Ack()))
		}
	})
}

// TestGoldenAngles compares hashes of packets with angles and byte strings, and checks that an
// angle that wraps around takes no more bits.
func TestGoldenAngles(t *testing.T) {
	turret := turretSchema(t)
	s, r := pair(t, turret, turretConfig)
	var lines []string
	for tick := range int32(200) {
		set := turrets(t, turret, 6, tick)
		out, _ := send(t, s, int64(tick), set)
		if tick > 120 && tick%30 != 0 && len(out) > 60 {
			t.Errorf("packet %d takes %d bytes", tick, len(out))
		}
		sum := sha256.Sum256(out)
		lines = append(lines, fmt.Sprintf("%d %s", len(out), hex.EncodeToString(sum[:6])))
		deliver(t, s, r, out)
	}
	golden(t, "testdata/angles.golden", strings.Join(lines, "\n")+"\n")
}

func golden(t *testing.T, name, got string) {
	if vectors.Update() {
		must(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	must(t, err)
	if got != string(want) {
		t.Error("the packets changed: the wire is another, or not the same on every processor (-update writes the file)")
	}
}

// TestLargeObject checks that an object that exceeds the budget does not delay the others, and is
// sent as soon as it fits.
func TestLargeObject(t *testing.T) {
	turret, err := snapshot.NewSchema(
		snapshot.Field{Name: "Place", Class: schema.ClassNumber, N: 1, Lo: -1000, Hi: 1000},
		snapshot.Field{Name: "Label", Class: schema.ClassBytes, N: 51, Hi: 200},
	)
	must(t, err)
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
			must(t, set.Add(snapshot.Object{ID: id}, row))
			p := 1.
			if id == 7 {
				p = 1000
			}
			_ = s.Prioritize(id, p)
		}
		if tick == 150 {
			must(t, s.SetBudget(400))
		}
		out, _, err := s.Append(nil, tick, set)
		if err != nil {
			t.Fatalf("tick %d: %v", tick, err)
		}
		u := decode(t, r, out)
		for _, o := range u.Objects {
			updates[o.ID]++
		}
		must(t, s.Ack(r.Ack()))
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
