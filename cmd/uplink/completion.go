package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

var shells = []struct {
	name   string
	script func(root *cobra.Command, w io.Writer) error
}{
	{"bash", func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
	{"zsh", (*cobra.Command).GenZshCompletion},
	{"fish", func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
	{"powershell", (*cobra.Command).GenPowerShellCompletionWithDesc},
}

func newCompletionCommand() *cobra.Command {
	var names []string
	for _, s := range shells {
		names = append(names, s.name)
	}
	return &cobra.Command{
		Use:   "completion " + strings.Join(names, "|"),
		Short: "Print a shell completion script",
		Long: `completion prints a script for a shell that completes commands, flags, their values, and file names by type. Load it
when the shell starts.`,
		Example: `  source <(uplink completion bash)
  uplink completion zsh > "${fpath[1]}/_uplink"
  uplink completion fish > ~/.config/fish/completions/uplink.fish
  uplink completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(names, args[0]) {
				return fmt.Errorf("completion: want one shell of %s", strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return shells[slices.Index(names, args[0])].script(cmd.Root(), cmd.OutOrStdout())
		},
	}
}

func addCompletions(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_ = c.RegisterFlagCompletionFunc(f.Name, completionOf(f)) // the flag exists and has no completion yet
		})
		switch {
		case strings.Contains(c.Use, "TRACE"):
			c.ValidArgsFunction = files("csv", "gz")
		case strings.Contains(c.Use, "CAPTURE"):
			c.ValidArgsFunction = files("pcap", "pcapng", "uplink")
		case c.ValidArgs == nil:
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		_ = root.RegisterFlagCompletionFunc(f.Name, completionOf(f))
	})
}

// completionOf returns the completion of a flag's value: names, files or none.
func completionOf(f *pflag.Flag) cobra.CompletionFunc {
	switch f.Name {
	case "codec":
		if f.Value.Type() == "stringSlice" {
			return lists(bench.Schemes()...)
		}
		return words(rpcdelta.RLE.String(), rpcdelta.Adaptive.String())
	case "suite":
		return words("gcm\t16 bytes per datagram", "chacha\t16 bytes, without AES", "compact\t8 bytes per datagram",
			"chacha-compact\t8 bytes, without AES", "none\tno encryption")
	case "redundancy":
		all := []string{"auto\tfollows packet loss", "off"}
		for n := 1; n <= rpcdelta.MaxRedundancy; n++ {
			all = append(all, strconv.Itoa(n))
		}
		return words(all...)
	case "preset":
		return lists(append(presetNames(allPresets), "all")...)
	case "log-format":
		return words(string(textLog), string(jsonLog))
	case "log-level":
		return words("debug", "info", "warn", "error")
	}
	if extensions, ok := fileFlags[f.Name]; ok {
		return files(extensions...)
	}
	return cobra.NoFileCompletions
}

// fileFlags are the flags that name a file, with the permitted extensions; none: any.
var fileFlags = map[string][]string{
	schemaFlag: {"json"}, priorFlag: {"prior"}, "record": {"csv", "gz"}, "svg": {"svg"}, "html": {"html"}, "capture": {"uplink"},
	"key": nil, "relay-key": nil, "game-secret": nil, "fleet-secret": nil, "keylog": nil, "output": nil, "cpuprofile": nil,
}

// words completes one of the given words, each with an optional description after a tab.
func words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder)
}

func lists(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		for _, word := range all {
			if !strings.Contains(","+before, ","+word+",") {
				out = append(out, before+word)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// files completes file names with one of the extensions, or all if there are none.
func files(extensions ...string) cobra.CompletionFunc {
	directive := cobra.ShellCompDirectiveFilterFileExt
	if len(extensions) == 0 {
		directive = cobra.ShellCompDirectiveDefault
	}
	return cobra.FixedCompletions(extensions, directive)
}
