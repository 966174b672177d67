package main

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// TestDefaults verifies that flags with the meaning of a field of the library's configurations have
// the field's default, in every command.
func TestDefaults(t *testing.T) {
	defaults := map[string]string{
		"ring": fmt.Sprint(rpcdelta.DefaultRing), "delivery": fmt.Sprint(rpcdelta.DefaultDelivery),
		"redundancy": new(redundancy).String(), "codec": rpcdelta.DefaultCodec.String(), "max-players": fmt.Sprint(endpoint.DefaultMaxConns),
	}
	seen := map[string]int{}
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		for name, want := range defaults {
			f := c.Flags().Lookup(name)
			if f == nil || f.Value.Type() == "float64Slice" || f.Value.Type() == "stringSlice" {
				continue // values to compare
			}
			if seen[name]++; f.DefValue != want {
				t.Errorf("%s --%s: default %s, want %s", c.CommandPath(), name, f.DefValue, want)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(newRoot(new(profiler)))
	for name := range defaults {
		if seen[name] == 0 {
			t.Errorf("no command has --%s", name)
		}
	}
	if seen["ring"] < 4 {
		t.Errorf("flags: %v", seen)
	}
}
