package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documentedLine is a command in a page or a comment: indented, or after a prompt.
var documentedLine = regexp.MustCompile(`(?m)^(?://\t|    |\$ )((?:[A-Z_]+=\S+ )*(?:[a-z][\w./-]*/)?[a-z.][\w./-]* .*)$`)

// testFunction is the declaration of a test, a benchmark, an example or a fuzz target.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Example|Fuzz)\w*)\(`)

// TestDocumentedCommands checks the commands of pages and package comments without running them:
// those of uplink must parse, and those of go test must name a directory and tests in it. The
// commands of operations.md are run by TestCommands in docs. Commands of other programs are not
// run.
func TestDocumentedCommands(t *testing.T) {
	checked := 0
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "web", "engines"}, d.Name())) {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); d.IsDir() || ext != ".md" && ext != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range documentedLine.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n//\t", ""), -1) {
			for command := range strings.SplitSeq(m[1], " | ") {
				args := commandWords(command)
				for len(args) > 0 && strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "-") {
					args = args[1:]
				}
				module := "../.."
				if len(args) > 3 && args[0] == "cd" && args[2] == "&&" {
					module, args = filepath.Join(module, args[1]), args[3:]
				}
				if len(args) > 2 && args[0] == "go" && args[1] == "run" && args[2] == "./cmd/uplink" {
					args = args[2:]
					args[0] = "uplink"
				}
				switch {
				case len(args) > 1 && args[0] == "uplink":
					checkUplink(t, path, command, args[1:])
				case len(args) > 2 && args[0] == "go" && args[1] == "test":
					checkGoTest(t, path, command, module, args[2:])
				default:
					continue
				}
				checked++
			}
		}
		return nil
	}))
	if checked < 120 {
		t.Errorf("%d commands found", checked)
	}
}

// commandWords splits a command, without what it redirects.
func commandWords(command string) (all []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(command, -1) {
		word := m[1] + m[2] + m[3]
		switch {
		case word == "...":
		case word == "&" || word == ";" || word == "#" || m[3] != "" && (strings.HasPrefix(word, ">") || strings.HasPrefix(word, "2>")):
			return all
		default:
			all = append(all, word)
		}
	}
	return all
}

func checkUplink(t *testing.T, path, command string, args []string) {
	t.Helper()
	c, rest, err := newRoot(&profiler{}).Find(args)
	if err == nil {
		if err = c.ParseFlags(rest); err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
	}
	if err != nil {
		t.Errorf("%s: %s: %v", path, command, err)
	}
}

// checkGoTest checks a command of go test, which runs in the root of a module or, without a
// directory, in that of the page.
func checkGoTest(t *testing.T, path, command, module string, args []string) {
	t.Helper()
	var names []string
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "./") && !strings.HasSuffix(a, "..."):
			dir := filepath.Join(module, a)
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("%s: %s: %v", path, command, err)
				continue
			}
			files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
			must(t, err)
			for _, file := range files {
				text, err := os.ReadFile(file)
				must(t, err)
				for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
					names = append(names, m[1])
				}
			}
		case (args[max(0, i-1)] == "-run" || args[max(0, i-1)] == "-bench") && a != "^$" && names != nil:
			pattern, err := regexp.Compile(a)
			if err != nil || !slices.ContainsFunc(names, func(n string) bool {
				return pattern.MatchString(n) || pattern.MatchString(strings.TrimPrefix(n, "Benchmark"))
			}) {
				t.Errorf("%s: %s: no test or benchmark matches %s: %v", path, command, a, err)
			}
		}
	}
}
