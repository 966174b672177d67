package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// debugUsage is the help of --debug.
const debugUsage = "serve /debug/pprof and /debug/vars beside /metrics, to loopback alone, and name sessions in exemplars"

// overwriteFlag is the name of the flag that lets a command replace existing files with players' input.
const overwriteFlag = "overwrite"

// existing adds what to do about an error of a file that exists.
func existing(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return hintedError{err, "choose another name, or add --" + overwriteFlag + " to replace it"}
	}
	return err
}

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

// linkFlags make no sense where there is no link.
var linkFlags = append([]string{"ack-hz"}, simlink.FlagNames...)

// checkDistance checks what --distance says, and that nothing is said of a link then.
func checkDistance(cmd *cobra.Command, frames int) error {
	if !cmd.Flags().Changed("distance") {
		return nil
	}
	if frames == 0 {
		return errors.New("--distance 0: want at least 1 frame")
	}
	for _, name := range linkFlags {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: there is no link with --distance; leave one of them out", name)
		}
	}
	return nil
}
