package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/demopanel"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// allPresets are the presets by descending bandwidth.
var allPresets = demopanel.Presets

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

// preset is the flag --preset of a client.
type preset client.Preset

const (
	presetFlag = "preset"
	noPreset   = "none"
)

func addPresetFlag(f *pflag.FlagSet, p *client.Preset) {
	f.Var((*preset)(p), presetFlag, "preset: low-latency, balanced, low-bandwidth or none; it sets --suite unless that is given")
}

// Type returns the name of the value in the help.
func (*preset) Type() string { return presetFlag }

func (p *preset) String() string { return cmp.Or(p.Name, noPreset) }

// Set parses a name.
func (p *preset) Set(name string) error {
	var list presets
	switch {
	case name == noPreset:
		*p = preset{}
		return nil
	case strings.ContainsAny(name, ",") || name == "all" || list.Set(name) != nil:
		return fmt.Errorf("no preset %q: want one of %s, %s", name, strings.Join(presetNames(allPresets), ", "), noPreset)
	}
	*p = preset(list[0])
	return nil
}

// checkPreset validates --preset.
func checkPreset(p *client.Preset, codec rpcdelta.Codec) error {
	if p.Name != "" && codec != rpcdelta.Adaptive {
		return fmt.Errorf("--%s: it needs --codec %v", presetFlag, rpcdelta.Adaptive)
	}
	return nil
}
