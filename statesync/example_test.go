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

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func Example() {
	q, err := statesync.NewQuantizer[Ball]("Ball", 60)
	check(err)
	cfg := statesync.Config{Velocities: q.Velocities(), Budget: 493}
	sender, err := newSender(q.Schema(), cfg)
	check(err)
	receiver, err := statesync.NewReceiver(q.Schema(), cfg)
	check(err)
	const id = 7
	here, there := Ball{Velocity: schema.Vec3{X: 3}}, Ball{}
	var hide statesync.Smoother
	set := q.Schema().NewSet()
	for tick := range int64(60) {
		// The server: round, step, send.
		check(q.Round(&here))
		if here.step(); tick == 30 {
			here.Velocity.X = -3
		}
		set.Reset()
		check(q.Add(set, snapshot.Object{ID: id}, &here))
		check(sender.Prioritize(id, 1))
		packet, _, err := sender.Append(nil, tick, set)
		check(err)
		// The client: round, step, and apply the received updates.
		check(q.Round(&there))
		there.step()
		hide.Step(1. / 60)
		if tick == 31 || tick == 32 {
			continue // the link loses these
		}
		update, err := receiver.Decode(packet)
		check(err)
		for _, o := range update.Objects {
			was := statesync.Pose{Position: there.Position}
			check(q.Restore(&there, o.Row))
			hide.Correct(was, statesync.Pose{Position: there.Position})
		}
		check(sender.Ack(receiver.Ack()))
	}
	fmt.Printf("the server has it at %.3f m, the client at %.3f m\n", here.Position.X, there.Position.X)
	fmt.Printf("%d packets of %d bytes in all\n", sender.Stats().Packets, sender.Stats().Bytes)
	// Output:
	// the server has it at 0.100 m, the client at 0.100 m
	// 60 packets of 221 bytes in all
}
