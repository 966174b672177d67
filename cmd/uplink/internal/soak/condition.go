package soak

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/simlink"
)

// condition is what the players and the server go through for a phase.
type condition struct {
	name    string
	link    simlink.Config
	restart restart // at the beginning of it
}

// restart is how the server ends before it is there again.
type restart uint8

const (
	stays   restart = iota
	closes          // it tells the players
	crashes         // it does not
)

// conditions make a round. The last one lets everything settle, so that rounds can be compared.
var conditions = []condition{
	{name: "loss 2 %", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.02, Burst: 1}},
	{name: "loss 10 % in bursts", link: simlink.Config{RTT: 80 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1, Burst: 4}},
	{name: "server closes", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.02, Burst: 1}, restart: closes},
	{name: "loss 30 %", link: simlink.Config{RTT: 120 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.3, Burst: 1}},
	{name: "server crashes", link: simlink.Config{RTT: 30 * time.Millisecond, Loss: 0.05, Burst: 2}, restart: crashes},
	{name: "calm", link: simlink.Config{RTT: 10 * time.Millisecond, Burst: 1}},
}
