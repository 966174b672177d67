package statesync_test

import (
	"fmt"

	"github.com/uplink-rpc/uplink/schema"
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
	const tickHz, id = 60, 7
	cfg := statesync.Config{Budget: 493}
	q, err := statesync.NewQuantizer[Ball]("Ball", tickHz)
	check(err)
	world, err := statesync.NewWorld[Ball]("Ball", tickHz, cfg)
	check(err)
	sender, err := world.NewSender(nil)
	check(err)
	receiver, err := statesync.NewReceiver[Ball]("Ball", tickHz, cfg)
	check(err)
	check(world.Prioritize(id, 1))
	here, there := Ball{Velocity: schema.Vec3{X: 3}}, Ball{}
	var hide statesync.Smoother
	size := 0
	for tick := range int64(60) {
		// The server: round, step, send.
		check(q.Round(&here))
		if here.step(); tick == 30 {
			here.Velocity.X = -3
		}
		check(world.Put(id, 0, &here))
		check(world.SetTick(tick))
		packet, err := sender.Append(nil)
		check(err)
		size += len(packet)
		// The client: round, step, and apply the received updates.
		check(q.Round(&there))
		there.step()
		hide.Step(1. / tickHz)
		if tick == 31 || tick == 32 {
			continue // the link loses these
		}
		update, err := receiver.Decode(packet)
		check(err)
		for _, o := range update.Objects {
			was := statesync.Pose{Position: there.Position}
			there = o.State
			hide.Correct(was, statesync.Pose{Position: there.Position})
		}
		check(sender.Ack(receiver.AppendAck(nil)))
	}
	fmt.Printf("the server has it at %.3f m, the client at %.3f m\n", here.Position.X, there.Position.X)
	fmt.Printf("60 packets of %d bytes in all\n", size)
	// Output:
	// the server has it at 0.100 m, the client at 0.100 m
	// 60 packets of 221 bytes in all
}
