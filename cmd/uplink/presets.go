package main

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/client"
)

// allPresets are the presets by descending bandwidth.
var allPresets = []client.Preset{client.LowLatency, client.Balanced, client.LowBandwidth}

// presets is the value of a flag that lists presets by name.
type presets []client.Preset

// Type returns the name of the value in the help.
func (*presets) Type() string { return "presets" }

func (p *presets) String() string { return strings.Join(presetNames(*p), ",") }

// Set parses names that are separated by commas. Hyphens and case do not matter.
func (p *presets) Set(list string) error {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }
	for name := range strings.SplitSeq(list, ",") {
		before := len(*p)
		for _, preset := range allPresets {
			if name == "all" || plain(name) == plain(preset.Name) {
				*p = append(*p, preset)
			}
		}
		if len(*p) == before {
			return fmt.Errorf("no preset %q: want all or some of %s", name, strings.Join(presetNames(allPresets), ", "))
		}
	}
	return nil
}

func presetNames(presets []client.Preset) []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}
