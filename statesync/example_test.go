package statesync_test

import (
	"fmt"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// Ball is an object that both ends simulate.
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
	cfg := statesync.Config{Velocities: q.Velocities(), Budget: 493}
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
		// The client: round, step, and apply the received updates.
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
