// Package sample holds a minute of recorded play of each of two games, for demos, examples and tests.
//
// The traces are numbers read from recordings that their projects publish as test files under the MIT license, which
// names the code; the recordings have no terms of their own. The README.txt beside each trace names its origin and the
// rows that were kept.
package sample

import (
	"embed"
	"sync"

	"github.com/uplink-rpc/uplink/trace"
)

// Files holds NAME.csv.gz, NAME.schema.json and NAME.README.txt of every sample.
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

// Portal2 is a minute of a player's user commands in Portal 2's co-op mode: 3600 frames at 60 Hz. Every call gives the
// same trace: read it only. Safe for concurrent use.
func Portal2() *trace.Trace { return portal2() }

// RocketLeague is a minute of a car in Rocket League's free play: 1800 frames at 30 Hz. Every call gives the same
// trace: read it only. Safe for concurrent use.
func RocketLeague() *trace.Trace { return rocketLeague() }

func load(name string) *trace.Trace {
	t, err := trace.LoadFS(Files, name+".csv.gz", nil)
	if err != nil {
		panic("sample: the embedded file is broken: " + err.Error())
	}
	return t
}
