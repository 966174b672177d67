package main

import (
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// debugUsage is the help of --debug.
const debugUsage = "serve /debug/pprof and /debug/vars beside /metrics, to loopback alone, and name sessions in exemplars"

// eachUsage is the help of --json where it writes results of traces.
const eachUsage = "print JSON: an object, or an array of them for several traces"

// codecFlag gives the codec that --codec names.
func codecFlag(name string) (rpcdelta.Codec, error) {
	codec, err := rpcdelta.ParseCodec(name)
	if err != nil {
		return 0, usageError{fmt.Errorf("--codec %q: %w", name, err)}
	}
	return codec, nil
}

// checkRing checks what --ring says.
func checkRing(frames int) error {
	if frames < 2 || frames > rpcdelta.MaxRing {
		return fmt.Errorf("--ring %d: want 2 to %d frames", frames, rpcdelta.MaxRing)
	}
	return nil
}
