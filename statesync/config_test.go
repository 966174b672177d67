package statesync_test

import (
	"math"
	"testing"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
)

func TestBadConfigs(t *testing.T) {
	link := func(field, of string, per float64) statesync.Config {
		return statesync.Config{Velocities: []schema.Velocity{{Field: field, Of: of, PerTick: per}}}
	}
	for _, c := range []statesync.Config{
		link("Position", "Speed", 1),
		link("Position", "Team", 1), link("Position", "Position", 1), link("Team", "Velocity", 1),
		link("Position", "Velocity", 0), link("Position", "Velocity", math.NaN()), link("Rotation", "Spin", 1000),
		{Velocities: append([]schema.Velocity{{Field: "Velocity", Of: "Spin", PerTick: 1}}, config.Velocities...)},
		{Velocities: []schema.Velocity{config.Velocities[0], {Field: "Velocity", Of: "Spin", PerTick: 1}}},
		{Rest: "Position"},
		{Rest: "?"},
		{Budget: -1},
		{Budget: 1 << 20},
		{Ticks: 33},
		{Ticks: -1},
	} {
		if _, err := statesync.NewSender(testSchema(t), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
