package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// build describes the program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // empty if it is unknown
	Changed bool   `json:"changed"`
	Go      string `json:"go"`
	System  string `json:"system"`

	committed time.Time // time of the commit; zero if it is unknown
}

// newBuild reads the build information that the Go command has embedded. If the program was built
// by go install, the version contains the commit.
func newBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.committed, _ = time.Parse(time.RFC3339, s.Value) // zero if invalid
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	commit := cmp.Or(b.Commit, "unknown")
	if b.Changed {
		commit += " with changes"
	}
	return fmt.Sprintf("%s, commit %s, %s, %s", b.Version, commit, b.Go, b.System)
}

func newVersionCommand() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print version and commit",
		Long: `version prints the version of uplink, the commit that it was built from, the version of Go, and the system that it is
for. CHANGELOG.md says what a version number promises.`,
		Example: `  uplink version
  uplink version --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := newBuild()
			if json {
				return encodeJSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "uplink", b)
			return err
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print JSON")
	return c
}

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write man pages",
		Long: `man writes a man page for each command into a directory that exists. They have the date of the commit, so that the
same version writes the same files.`,
		Example: `  uplink man /usr/local/share/man/man1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("man: want one directory")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := doc.GenManHeader{Section: "1", Source: "uplink", Manual: "uplink"}
			if at := newBuild().committed; !at.IsZero() {
				header.Date = &at
			}
			return doc.GenManTree(root, &header, args[0])
		},
	}
}
