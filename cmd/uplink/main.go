// Command uplink runs, measures and inspects servers and clients of uplink.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command line and returns the exit code: 0, 1 for a failure, 2 for wrong usage.
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
		Short: "Tools for uplink: compact client RPCs for games",
		Long: `uplink makes a game's high-rate client RPCs small: each call is quantized and sent as the difference
from a call that the dedicated server has acknowledged.`,
		Version:       newBuild().String(),
		Args:          usageArgs(noCommand),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, // report prints errors
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&profile.path, "cpuprofile", "", "write a CPU profile to this file, for go tool pprof")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkFiles(cmd); err != nil {
			return err
		}
		return profile.start()
	}
	root.CompletionOptions.DisableDefaultCmd = true // newCompletionCommand replaces it
	root.AddCommand(newDemoCommand(), newDSCommand(), newReplayCommand(), newBotsCommand(), newBenchCommand(),
		newAnalyzeCommand(), newTuneCommand(), newTrainCommand(), newInspectCommand(), newReplayCaptureCommand(),
		newKeygenCommand(), newTokenCommand(), newSoakCommand(), newSoakServerCommand(), newSoakFleetServerCommand(), newDecryptCommand(), newConformanceCommand(), newConformancePeerCommand(), newBackendCommand(), newVersionCommand(), newManCommand(), newCompletionCommand())
	for _, c := range root.Commands() {
		c.Args = usageArgs(c.Args)
	}
	root.SetHelpCommand(newHelpCommand(root))
	addCompletions(root)
	return root
}

// profiler writes a CPU profile of a run, if it has a path.
type profiler struct {
	path string
	file *os.File
}

func (p *profiler) start() (err error) {
	if p.path == "" {
		return nil
	}
	if p.file, err = os.Create(p.path); err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	return pprof.StartCPUProfile(p.file)
}

func (p *profiler) stop() error {
	if p.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	return p.file.Close()
}
