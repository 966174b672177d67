package statesync_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
)

func testSchema(t testing.TB) *snapshot.Schema {
	s, err := snapshot.NewSchema(
		snapshot.Field{Name: "Position", Class: schema.ClassNumber, N: 3, Lo: -131072, Hi: 131071},
		snapshot.Field{Name: "Rotation", Class: schema.ClassQuat, N: 4, Lo: -16383, Hi: 16383},
		snapshot.Field{Name: "Velocity", Class: schema.ClassNumber, N: 3, Lo: -65536, Hi: 65535},
		snapshot.Field{Name: "Spin", Class: schema.ClassNumber, N: 3, Lo: -32768, Hi: 32767},
		snapshot.Field{Name: "Team", Class: schema.ClassInteger, N: 1, Lo: -2, Hi: 5},
		snapshot.Field{Name: "Burning", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	must(t, err)
	return s
}

var config = statesync.Config{Velocities: []schema.Velocity{
	{Field: "Position", Of: "Velocity", PerTick: schema.StepsPerTick(1. / 60)},
	{Field: "Rotation", Of: "Spin", PerTick: schema.RadiansPerTick(1. / 60 / 1024)},
}}

// world moves objects: they fly, collide, rest, appear, vanish and are replaced.
type world struct {
	r      *rand.Rand
	schema *snapshot.Schema
	things [64]*thing
	churn  int
}

type thing struct {
	generation uint8
	place      [3]float64
	turn       quat.Float
	speed      [3]float64
	spin       [3]float64
	flags      [2]int32
}

func newWorld(t testing.TB, seed uint64, n int) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 3)), schema: testSchema(t), churn: 300}
	for i := range n {
		w.things[i] = w.thing(0)
	}
	return w
}

func (w *world) thing(generation uint8) *thing {
	x := &thing{generation: generation, turn: quat.Float{3: 1}}
	for k := range x.place {
		x.place[k] = w.r.Float64()*80000 - 40000
		x.speed[k] = w.r.NormFloat64() * 4000
		x.spin[k] = w.r.NormFloat64() * 1500
	}
	return x
}

func (w *world) step() {
	for i, x := range w.things {
		switch e := w.r.IntN(w.churn); {
		case e == 0 && x != nil:
			w.things[i] = nil
			continue
		case e == 0 || e == 1 && x != nil:
			g := uint8(w.r.IntN(256))
			w.things[i] = w.thing(g)
			continue
		case x == nil:
			continue
		case e < 10:
			*x = *w.thing(x.generation)
		case e < 14:
			x.speed, x.spin = [3]float64{}, [3]float64{}
		case e < 16:
			x.flags = [2]int32{int32(w.r.IntN(8) - 2), int32(w.r.IntN(2))}
		}
		x.step()
	}
}

func (x *thing) step() {
	for k := range x.place {
		x.place[k] = min(max(x.place[k]+x.speed[k]/60, -131072), 131071)
	}
	turned := [3]float64{x.spin[0] / 61440, x.spin[1] / 61440, x.spin[2] / 61440}
	x.turn = quat.ExpFloat(turned).Mul(x.turn)
}

func (w *world) fill(t testing.TB, set *snapshot.Set) {
	set.Reset()
	for i, x := range w.things {
		if x == nil {
			continue
		}
		row := x.row()
		must(t, set.Add(snapshot.Object{ID: uint16(i * 7), Generation: x.generation}, row[:]))
	}
}

func (x *thing) row() (row [15]int32) {
	big := 0
	for i, v := range x.turn {
		if v*v > x.turn[big]*x.turn[big] {
			big = i
		}
	}
	row[3] = int32(big)
	for k, v := range x.turn.Pack(big, 16383) {
		row[4+k] = min(max(int32(v), -16383), 16383)
		row[k], row[7+k], row[10+k] = int32(x.place[k]), min(max(int32(x.speed[k]), -65536), 65535), int32(x.spin[k])
	}
	row[13], row[14] = x.flags[0], x.flags[1]
	return row
}

// sender is a sender with a world of its own.
type sender struct {
	*statesync.Sender
	world *statesync.Shared
}

// Append sets the tick of the world and appends its packet.
func (s *sender) Append(dst []byte, tick int64, set *snapshot.Set) ([]byte, statesync.Info, error) {
	if err := s.world.SetTick(tick, set); err != nil {
		return dst, statesync.Info{}, err
	}
	return s.Sender.Append(dst)
}

func newSender(s *snapshot.Schema, cfg statesync.Config) (*sender, error) {
	w, err := statesync.NewShared(s, cfg)
	if err != nil {
		return nil, err
	}
	snd, err := w.NewSender(cfg)
	return &sender{snd, w}, err
}

func pair(t testing.TB, s *snapshot.Schema, cfg statesync.Config) (*sender, *statesync.Receiver) {
	sender, err := newSender(s, cfg)
	must(t, err)
	receiver, err := statesync.NewReceiver(s, cfg)
	must(t, err)
	return sender, receiver
}

// send sets the priority of all objects of a set to 1 and appends a packet.
func send(t rapid.TB, s *sender, tick int64, set *snapshot.Set) ([]byte, statesync.Info) {
	for i := range set.Len() {
		must(t, s.Prioritize(set.Object(i).ID, 1))
	}
	out, info, err := s.Append(nil, tick, set)
	must(t, err)
	return out, info
}

// deliver decodes a packet and acks it.
func deliver(t rapid.TB, s *sender, r *statesync.Receiver, packet []byte) {
	decode(t, r, packet)
	must(t, s.Ack(r.Ack()))
}

// decode decodes a packet, which must be valid.
func decode(t rapid.TB, r *statesync.Receiver, packet []byte) *statesync.Update {
	u, err := r.Decode(packet)
	must(t, err)
	return u
}

// must fails the test if err is not nil.
func must(t rapid.TB, err error) {
	if err != nil { // Helper is slow, and benchmarks call must
		t.Helper()
		t.Fatal(err)
	}
}
