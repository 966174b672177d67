package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// run runs the command line and gives the exit code: 0, 1 for what went wrong, 2 for what was asked wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var profile profiler
	root := newRoot(&profile)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return report(stderr, cmd, errors.Join(err, profile.stop()))
}

func newRoot(profile *profiler) *cobra.Command {
	root := &cobra.Command{
		Use:   "uplink",
		Short: "Shows and measures small client RPCs on recorded play",
		Long: `uplink makes a game's high-rate client RPCs small: each call is quantized and sent as the difference
from a call that the dedicated server is known to hold.`,
		Version:       version(),
		Args:          usageArgs(noCommand),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, // report prints them
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&profile.path, "cpuprofile", "", "write a CPU profile of the run to this file, for go tool pprof")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return profile.start() }
	root.CompletionOptions.DisableDefaultCmd = true // there is one that knows more
	root.AddCommand(newDemoCommand(), newDSCommand(), newReplayCommand(), newBotsCommand(), newBenchCommand(), newBenchSnapshotsCommand(), newAckRateCommand(),
		newAnalyzeCommand(), newTuneCommand(), newDriftCommand(), newFloorCommand(), newTrainCommand(), newInspectCommand(), newReplayCaptureCommand(),
		newKeygenCommand(), newTokenCommand(), newSoakCommand(), newSoakServerCommand(), newDecryptCommand(), newCompletionCommand())
	for _, c := range root.Commands() {
		c.Args = usageArgs(c.Args)
	}
	addCompletions(root)
	return root
}

// version is the module's version as Go built it in.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = ", " + s.Value[:min(12, len(s.Value))]
		}
	}
	return fmt.Sprintf("%s (%s%s)", info.Main.Version, info.GoVersion, revision)
}
