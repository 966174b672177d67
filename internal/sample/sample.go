// Package sample contains a minute of recorded play of each of two games, for demos, examples and
// tests.
//
// The traces are numbers from recordings that other projects publish as test files. These projects
// have the MIT license for their code, and no separate terms for the recordings. The README.txt of
// each trace names its origin and the rows.
package sample

import (
	"embed"
	"sync"

	"github.com/uplink-rpc/uplink/internal/trace"
)

// Files contains NAME.csv.gz, NAME.schema.json and NAME.README.txt of every sample.
//
//go:embed *.csv.gz *.schema.json *.README.txt
var Files embed.FS

// The names of the samples.
const (
	Portal2Name      = "portal2_coop_60hz"
	RocketLeagueName = "rocketleague_solo_30hz"
)

var (
	portal2      = sync.OnceValue(func() *trace.Trace { return load(Portal2Name) })
	rocketLeague = sync.OnceValue(func() *trace.Trace { return load(RocketLeagueName) })
)

// Portal2 returns a minute of a player's user commands in Portal 2's co-op mode: 3,600 frames at 60
// Hz. All calls return the same trace; do not modify it. It is safe for concurrent use.
func Portal2() *trace.Trace { return portal2() }

// RocketLeague returns a minute of a car in Rocket League's free play: 1,800 frames at 30 Hz. All
// calls return the same trace; do not modify it. It is safe for concurrent use.
func RocketLeague() *trace.Trace { return rocketLeague() }

func load(name string) *trace.Trace {
	t, err := trace.LoadFS(Files, name+".csv.gz", nil)
	if err != nil {
		panic("sample: the embedded file is broken: " + err.Error())
	}
	return t
}
