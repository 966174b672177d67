package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestComplete asks as a shell does; the last line is a bit mask of how to go on.
func TestComplete(t *testing.T) {
	for args, want := range map[string]string{
		"bench --codec |":                 "paper rle adaptive :6",
		"bench --codec rle,a|":            "rle,paper rle,adaptive :6",
		"bench --preset |":                "low-latency balanced low-bandwidth all :6",
		"bench --preset balanced,l|":      "balanced,low-latency balanced,low-bandwidth balanced,all :6",
		"replay --codec |":                "rle adaptive :36",
		"ds --suite |":                    "gcm chacha compact chacha-compact none :36",
		"bots --redundancy |":             "auto off 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 :36",
		"replay --log-format |":           "text json :36",
		"replay --log-level |":            "debug info warn error :36",
		"ds --schema |":                   "json :8",
		"bench --prior |":                 "prior :8",
		"replay |":                        "csv gz :8",
		"soak --players 3 |":              "csv gz :8",
		"decrypt |":                       "pcap pcapng uplink :8",
		"decrypt --keylog |":              ":0",
		"token |":                         ":4",
		"ds --listen |":                   ":4",
		"ds --key |":                      ":0",
		"ds --cpuprofile |":               ":0",
		"completion |":                    "bash zsh fish powershell :4",
		"ke|":                             "keygen :4",
		"demo --codec=adaptive --suite=|": "gcm chacha compact chacha-compact none :36",
	} {
		words := strings.Split(strings.TrimSuffix(args, "|"), " ")
		code, stdout, _ := uplink(t, append([]string{cobra.ShellCompRequestCmd}, words...)...)
		var got []string
		for line := range strings.Lines(stdout) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			got = append(got, word)
		}
		if text := strings.Join(got, " "); code != 0 || text != want {
			t.Errorf("uplink %s: code %d, %q, want %q", args, code, text, want)
		}
	}
}

// TestCompleteFiles: a flag documented as a file name completes file names.
func TestCompleteFiles(t *testing.T) {
	for _, c := range newRoot(&profiler{}).Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(f.Usage, "file") || !strings.HasPrefix(f.Value.Type(), "string") || strings.Contains(f.Usage, "@FILE") {
				return
			}
			complete, ok := c.GetFlagCompletionFunc(f.Name)
			if !ok {
				t.Fatalf("%s --%s is not completed", c.Name(), f.Name)
			}
			if _, directive := complete(c, nil, ""); directive&cobra.ShellCompDirectiveNoFileComp != 0 {
				t.Errorf("%s --%s: %q, but no file is completed", c.Name(), f.Name, f.Usage)
			}
		})
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, script, stderr := uplink(t, "completion", shell)
		if code != 0 || stderr != "" || !strings.Contains(script, cobra.ShellCompRequestCmd) {
			t.Errorf("%s: code %d: %s", shell, code, stderr)
		}
		path, err := exec.LookPath(shell)
		if err != nil || shell == "powershell" {
			continue
		}
		file := filepath.Join(t.TempDir(), shell)
		must(t, os.WriteFile(file, []byte(script), 0o600))
		if out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

// TestHelpHasExamples: each command's help shows how it is called, with flags that it has.
func TestHelpHasExamples(t *testing.T) {
	for _, c := range newRoot(&profiler{}).Commands() {
		if c.Hidden {
			continue
		}
		if c.Example == "" || c.Short == "" || c.Long == "" {
			t.Errorf("%s: no example, or no description", c.Name())
		}
		shown := 0
		for line := range strings.Lines(c.Example) {
			_, args, ok := strings.Cut(line, "uplink "+c.Name())
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q", c.Name(), line)
			}
			if !ok { // text before or after the table
				continue
			}
			shown++
			args, _, _ = strings.Cut(args, "-- ") // what follows is another command
			for _, word := range strings.Fields(args) {
				name, isFlag := strings.CutPrefix(word, "--")
				if name, _, _ = strings.Cut(name, "="); isFlag && c.Flags().Lookup(name) == nil {
					t.Errorf("%s: the example %q has no such flag", c.Name(), line)
				}
			}
		}
		if shown == 0 {
			t.Errorf("%s: no example calls it", c.Name())
		}
	}
}
