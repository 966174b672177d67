package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells are those that can complete, each with what writes its script.
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
		Short: "Print the script that has a shell complete commands, flags and files",
		Long: `completion prints a script for a shell, which then completes the names of commands and flags, the values of flags that
have names, and files by what they are. Read it at the shell's start.`,
		Example: `  source <(uplink completion bash)
  uplink completion zsh > "${fpath[1]}/_uplink"
  uplink completion fish > ~/.config/fish/completions/uplink.fish
  uplink completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(names, args[0]) {
				return fmt.Errorf("completion: for which shell? want one of %s", strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return shells[slices.Index(names, args[0])].script(cmd.Root(), cmd.OutOrStdout())
		},
	}
}
