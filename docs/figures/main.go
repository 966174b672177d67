// Command figures runs the commands that docs/results.md shows and puts what they say below them:
//
//	go run ./docs/figures [FILE]
//
// Run it at the top of the repository. A code block with lines "go run ./cmd/uplink ...", of the
// commands that can be repeated, is followed by a table, which gets the results of its bench
// commands (see [fillTable]), or by a text block, which gets the output. The output of "cd bench &&
// go run ..." goes to a text block too. Everything else, tables of benchmarks, servers and soaks
// too, stays as it is.
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

// shell runs a command line and gives its output.
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

// again are the commands of uplink that say the same each time, or nearly so. The others wait for somebody, or take
// what the machine can do.
var again = []string{"ackrate", "bench", "drift", "train"}

// isCommand says that a line is to be run.
func isCommand(line string) bool {
	rest, ok := strings.CutPrefix(line, indent+"go run ./cmd/uplink ")
	if !ok {
		return strings.HasPrefix(line, indent+"cd bench && go run ")
	}
	name, _, _ := strings.Cut(rest, " ")
	return slices.Contains(again, name)
}

// refresh gives the text with the results of its commands.
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
			commands = nil // whose results are not shown
		}
		if err != nil {
			return "", err
		}
	}
	return strings.Join(out, "\n"), nil
}

// draw runs the commands that draw a picture, whatever else they say.
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
