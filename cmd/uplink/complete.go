package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// addCompletions has shells complete the flags and arguments of all commands.
func addCompletions(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_ = c.RegisterFlagCompletionFunc(f.Name, completionOf(f)) // it exists, and has none
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

// completionOf gives what completes the value of a flag: its names, the files that it may name, or nothing.
func completionOf(f *pflag.Flag) cobra.CompletionFunc {
	switch f.Name {
	case "codec":
		if f.Value.Type() == "stringSlice" {
			return lists(bench.Schemes()...)
		}
		return words(rpcdelta.RLE.String(), rpcdelta.Adaptive.String())
	case "suite":
		return words("gcm\t16 bytes a datagram", "compact\t8 bytes a datagram", "none\tprotects nothing")
	case "redundancy":
		all := []string{"auto\tas the losses ask for", "off"}
		for n := 1; n <= rpcdelta.MaxRedundancy; n++ {
			all = append(all, strconv.Itoa(n))
		}
		return words(all...)
	case "log-format":
		return words(string(textLog), string(jsonLog))
	case "log-level":
		return words("debug", "info", "warn", "error")
	case schemaFlag:
		return files("json")
	case priorFlag:
		return files("prior")
	case "record":
		return files("csv", "gz")
	case "svg", "html":
		return files(f.Name)
	case "capture":
		return files("uplink")
	case "key", "keylog", "out", "output", "cpuprofile":
		return files()
	}
	return cobra.NoFileCompletions
}

// words completes one of some words; behind a tab is what each means.
func words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder)
}

// lists completes words with commas between them.
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

// files completes names of files with one of the extensions, or of any without.
func files(extensions ...string) cobra.CompletionFunc {
	directive := cobra.ShellCompDirectiveFilterFileExt
	if len(extensions) == 0 {
		directive = cobra.ShellCompDirectiveDefault
	}
	return cobra.FixedCompletions(extensions, directive)
}
