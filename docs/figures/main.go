// Command figures runs the commands that docs/results.md shows and updates their results below
// them:
//
//	go run ./docs/figures [FILE]
//
// Run it at the top of the repository. It runs the lines "go run ./cmd/uplink ..." of a code block
// if their commands are reproducible. A table after the block is filled with the results of its
// bench commands (see [fillTable]); a text block is replaced by the output. The output of "cd bench
// && go run ..." replaces a text block too. Everything else is unchanged, including tables of
// benchmarks, servers and soak tests.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	path := "docs/results.md"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := update(path, shell); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// shell runs a command line and returns its output.
func shell(line string) (string, error) {
	fmt.Fprintln(os.Stderr, line)
	c := exec.Command("sh", "-c", line)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", line, err)
	}
	return string(out), err
}

func update(path string, run func(line string) (string, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := refresh(string(text), run)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}

const (
	indent = "    "
	fence  = "```"
)

// reproducible are the commands of uplink whose output is the same each time, or nearly so. The
// others wait for input, or their results depend on the machine.
var reproducible = []string{"ackrate", "bench", "drift", "train"}

// isCommand reports whether a line is a command to run.
func isCommand(line string) bool {
	rest, ok := strings.CutPrefix(line, indent+"go run ./cmd/uplink ")
	if !ok {
		return strings.HasPrefix(line, indent+"cd bench && go run ")
	}
	name, _, _ := strings.Cut(rest, " ")
	return slices.Contains(reproducible, name)
}

// refresh runs the commands of a text and returns it with their results.
func refresh(text string, run func(line string) (string, error)) (string, error) {
	lines := strings.Split(text, "\n")
	var out, commands []string
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out = append(out, line)
		var err error
		switch {
		case isCommand(line):
			commands = append(commands, strings.TrimPrefix(line, indent))
		case len(commands) > 0 && strings.HasPrefix(line, "| "):
			end := i
			for end < len(lines) && strings.HasPrefix(lines[end], "|") {
				end++
			}
			var table []string
			if table, err = tableOf(commands, lines[i:end], run); err == nil {
				out = append(out[:len(out)-1], table...)
			}
			i, commands = end-1, nil
		case len(commands) > 0 && strings.HasPrefix(line, fence):
			for i++; i < len(lines) && lines[i] != fence; i++ {
			}
			var said string
			if said, err = outputOf(commands, run); err == nil {
				out = append(out, strings.TrimRight(said, "\n"), fence)
			}
			commands = nil
		case line != "" && !strings.HasPrefix(line, indent):
			err = draw(commands, run)
			commands = nil // the page does not show their results
		}
		if err != nil {
			return "", err
		}
	}
	return strings.Join(out, "\n"), nil
}

// draw runs the commands that write a picture and ignores their output.
func draw(commands []string, run func(line string) (string, error)) error {
	for _, c := range commands {
		if !strings.Contains(c, " --svg ") {
			continue
		}
		if _, err := run(c); err != nil {
			return err
		}
	}
	return nil
}

func outputOf(commands []string, run func(line string) (string, error)) (all string, err error) {
	for _, c := range commands {
		said, err := run(c)
		if err != nil {
			return "", err
		}
		all += said
	}
	return all, nil
}

// tableOf runs bench commands and fills a table with their results.
func tableOf(commands, table []string, run func(line string) (string, error)) ([]string, error) {
	var all []result
	for _, c := range commands {
		said, err := run(c + " --json")
		if err != nil {
			return nil, err
		}
		var several []result
		if !strings.HasPrefix(said, "[") {
			said = "[" + said + "]"
		}
		if err := json.Unmarshal([]byte(said), &several); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		all = append(all, several...)
	}
	for _, r := range all {
		if r.wrong() {
			return nil, fmt.Errorf("%s: frames differ from what was sent", r.Trace)
		}
	}
	return fillTable(table, all), nil
}
