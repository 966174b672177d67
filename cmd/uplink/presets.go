package main

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/client"
)

// presets is the value of a flag that lists presets by name.
type presets []client.Preset

// Type names the value in the help.
func (*presets) Type() string { return "presets" }

func (p *presets) String() string {
	names := make([]string, len(*p))
	for i := range *p {
		names[i] = (*p)[i].Name
	}
	return strings.Join(names, ",")
}

// Set parses names that are separated by commas. Hyphens and case do not matter.
func (p *presets) Set(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if name == "all" {
			*p = append(*p, client.Presets()...)
			continue
		}
		preset, err := client.ParsePreset(name)
		if err != nil {
			return fmt.Errorf("%w, or all", err)
		}
		*p = append(*p, preset)
	}
	return nil
}
