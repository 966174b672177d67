package metrics

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	other := debug.Module{Path: "example.com/game", Version: "v0.3.0"}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3":  {Main: debug.Module{Path: module, Version: "v1.2.3"}},
		"v1.2.4":  {Main: other, Deps: []*debug.Module{{Path: module, Version: "v1.2.4"}}},
		"v1.2.5":  {Main: other, Deps: []*debug.Module{{Path: module, Version: "v1.2.4", Replace: &debug.Module{Version: "v1.2.5"}}}},
		"unknown": {Main: debug.Module{Path: module}},
	} {
		if got := version(info, true); got != want {
			t.Errorf("%+v: %q, want %q", info, got, want)
		}
	}
	if got := version(nil, false); got != "unknown" {
		t.Errorf("without information: %q", got)
	}
}
