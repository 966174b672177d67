package statesync_test

import (
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// Ball is what both ends simulate.
type Ball struct {
	Position schema.Vec3 `uplink:"resolution=0.001,min=-100,max=100,velocity=Velocity"`
	Velocity schema.Vec3 `uplink:"resolution=0.001,min=-50,max=50"`
}

// step is the simulation of a sixtieth of a second.
func (b *Ball) step() { b.Position.X += b.Velocity.X / 60 }

func Example() {
	q, err := statesync.NewQuantizer[Ball]("Ball", 60)
	if err != nil {
		panic(err)
	}
	cfg := statesync.Config{Velocities: q.Velocities(), Budget: statesync.BytesPerPacket(256, 60, 40)}
	sender, err := statesync.NewSender(q.Schema(), cfg)
	if err != nil {
		panic(err)
	}
	receiver, err := statesync.NewReceiver(q.Schema(), cfg)
	if err != nil {
		panic(err)
	}
	const id = 7
	here, there := Ball{Velocity: schema.Vec3{X: 3}}, Ball{}
	var hide statesync.Smoother
	set := q.Schema().NewSet()
	for tick := range int64(60) {
		// The server: round, step, send.
		if err := q.Round(&here); err != nil {
			panic(err)
		}
		if here.step(); tick == 30 {
			here.Velocity.X = -3
		}
		set.Reset()
		if err := q.Add(set, snapshot.Object{ID: id}, &here); err != nil {
			panic(err)
		}
		if err := sender.Prioritize(id, 1); err != nil {
			panic(err)
		}
		packet, _, err := sender.Append(nil, tick, set)
		if err != nil {
			panic(err)
		}
		// The client: round, step, and take what came over what it has.
		if err := q.Round(&there); err != nil {
			panic(err)
		}
		there.step()
		hide.Step(1. / 60)
		if tick == 31 || tick == 32 {
			continue // the link loses these
		}
		update, err := receiver.Decode(packet)
		if err != nil {
			panic(err)
		}
		for _, o := range update.Objects {
			was := statesync.Pose{Position: there.Position}
			if err := q.Restore(&there, o.Row); err != nil {
				panic(err)
			}
			hide.Correct(was, statesync.Pose{Position: there.Position})
		}
		if err := sender.Ack(receiver.Ack()); err != nil {
			panic(err)
		}
	}
	fmt.Printf("the server has it at %.3f m, the client at %.3f m\n", here.Position.X, there.Position.X)
	fmt.Printf("%d packets of %d bytes in all\n", sender.Stats().Packets, sender.Stats().Bytes)
	// Output:
	// the server has it at 0.100 m, the client at 0.100 m
	// 60 packets of 222 bytes in all
}

// A snapshot of all that moves would be too large: each has those anew whose turn it is, and of the others what the one
// before it had, which takes nearly nothing.
func ExampleAccumulator() {
	moving, err := snapshot.NewSchema(snapshot.Field{Name: "Position", Kind: snapshot.Motion, N: 3, Lo: -1 << 17, Hi: 1<<17 - 1})
	if err != nil {
		panic(err)
	}
	const objects, turns = 200, 40
	world := snapshot.NewWorld(moving, nil) // this player's own
	encoder, decoder := snapshot.NewEncoder(moving, world), snapshot.NewDecoder(moving, nil)
	var waiting statesync.Accumulator
	var shown [objects][]int32
	var last, longest [objects]int
	largest := 0
	for tick := range 120 {
		for id := range objects {
			priority := 1.
			if id == 0 {
				priority = 1000 // the player's own
			}
			if err := waiting.Add(uint16(id), priority); err != nil {
				panic(err)
			}
		}
		waiting.Start()
		for range turns {
			id, _ := waiting.Next()
			waiting.Sent(id)
			shown[id] = []int32{int32(int(id)*500 + tick*tick%977), int32(tick * (int(id)%7 - 3)), 0} // as it is by now
			longest[id], last[id] = max(longest[id], tick-last[id]), tick
		}
		set := world.Begin()
		for id, row := range shown {
			if row == nil {
				continue // it had no turn yet
			}
			if err := set.Add(snapshot.Object{ID: uint16(id)}, row); err != nil {
				panic(err)
			}
		}
		payload, _, err := encoder.Append(nil, 400)
		if err != nil {
			panic(err)
		}
		largest = max(largest, len(payload))
		if _, _, err := decoder.Decode(payload); err != nil {
			panic(err)
		}
		if err := encoder.Ack(decoder.Ack()); err != nil {
			panic(err)
		}
	}
	fmt.Printf("within 400 bytes: %v; the player's object waits %d tick, the others at most %d\n", largest <= 400, longest[0], slices.Max(longest[:]))
	// Output:
	// within 400 bytes: true; the player's object waits 1 tick, the others at most 6
}
