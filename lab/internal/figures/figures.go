// Package figures runs the commands in lab/results.md and updates the results below them.
package figures

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Update runs the commands of a page that contain match, if their output is reproducible except for
// times. The commands "go run ./cmd/uplink ..." and "cd lab && go run . ..." run in the parent of
// the working directory. A table below a block of commands is filled with the results of its bench
// commands (see fillTable). A text block is replaced by the output. Everything else is unchanged,
// including tables of benchmarks, servers and soak tests.
func Update(path, match string) error { return update(path, match, shell) }

func shell(line string) (string, error) {
	fmt.Fprintln(os.Stderr, line)
	c := exec.Command("sh", "-c", line)
	c.Stderr, c.Dir = os.Stderr, ".."
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", line, err)
	}
	return string(out), err
}

func update(path, match string, run func(line string) (string, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := refresh(string(text), match, run)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}

const (
	indent = "    "
	fence  = "```"
)

// reproducible are the commands whose output is the same each time, except for times. Other
// commands wait for input, or all their results depend on the machine.
var reproducible = []string{
	"go run ./cmd/uplink bench ", "go run ./cmd/uplink train ", "cd lab && go run . ackrate ", "cd lab && go run . compare", "cd lab && go run . drift ",
	"cd lab && go run . world ",
}

func isCommand(line string) bool {
	command, indented := strings.CutPrefix(line, indent)
	return indented && slices.ContainsFunc(reproducible, func(c string) bool { return strings.HasPrefix(command, c) })
}

// refresh runs the commands of a text that contain match and returns the text with their results.
func refresh(text, match string, run func(line string) (string, error)) (string, error) {
	lines := strings.Split(text, "\n")
	var out, commands []string
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out = append(out, line)
		var err error
		switch {
		case isCommand(line) && strings.Contains(line, match):
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
			pictures := slices.DeleteFunc(commands, func(c string) bool { return !strings.Contains(c, " --svg ") })
			_, err = outputOf(pictures, run)
			commands = nil // the page does not contain their results
		}
		if err != nil {
			return "", err
		}
	}
	return strings.Join(out, "\n"), nil
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

// result is the result of one trace in the JSON of bench, with the parts that tables contain.
type result struct {
	Trace  string
	Codecs []map[string]any
}

// wrong reports whether a codec delivered frames that differ from the sent ones.
func (r *result) wrong() bool {
	for _, c := range r.Codecs {
		if n, ok := c["mismatches"].(float64); ok && n != 0 {
			return true
		}
	}
	return false
}

// members maps names of columns to JSON keys of bench. A column contains the last codec of the
// results, or the codec or preset that precedes the name, as in "paper wire".
var members = map[string]string{
	"full":              "full_bits_per_frame",
	"payload":           "payload_bits_per_frame",
	"header":            "header_bits_per_frame",
	"datagram":          "datagram_bits_per_frame",
	"AEAD":              "aead_bits_per_frame",
	"IP, UDP":           "ip_udp_bits_per_frame",
	"wire":              "wire_bits_per_frame",
	"ack":               "ack_bits_per_frame",
	"ack wire":          "ack_wire_bits_per_frame",
	"ratio":             "wire_ratio",
	"wire ratio":        "wire_ratio",
	"batched ratio":     "batched_ratio",
	"batched rle ratio": "batched_rle_ratio",
	"delay":             "delay_ms_mean",
	"delivered":         "delivered_ratio",
	"keyframes":         "keyframes",
	"wrong":             "mismatches",
	"encode ns":         "encode_ns_per_frame",
	"decode ns":         "decode_ns_per_frame",
	"allocs":            "allocs_per_frame",
}

// together is the first cell of the row for all traces. The row contains geometric means, but
// arithmetic means of delivered ratios and of counts of wrong frames.
const together = "together"

// fillTable returns the old table with a row for each result. Columns with unknown names and rows
// of other traces are unchanged.
func fillTable(old []string, results []result) []string {
	columns := cells(old[0])
	kept := map[string][]string{}
	for _, line := range old[2:] {
		row := cells(line)
		kept[row[0]] = row
	}
	table := old[:2:2]
	add := func(first string, cell func(name string) (string, bool)) {
		row := append([]string{first}, make([]string, len(columns)-1)...)
		for k, name := range columns[1:] {
			if text, ok := cell(name); ok {
				row[k+1] = text
			} else if was := kept[first]; k+1 < len(was) {
				row[k+1] = was[k+1]
			}
		}
		delete(kept, first)
		table = append(table, "| "+strings.Join(row, " | ")+" |")
	}
	for i := range results {
		add(results[i].Trace, results[i].cell)
	}
	if kept[together] != nil {
		add(together, func(name string) (string, bool) { return mean(results, name) })
	}
	for _, line := range old[2:] {
		if _, ok := kept[cells(line)[0]]; ok {
			table = append(table, line)
		}
	}
	return table
}

func cells(line string) []string {
	row := strings.Split(strings.Trim(line, "|"), "|")
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	return row
}

func (r *result) cell(name string) (string, bool) {
	v, ok := r.number(name)
	return show(name, v), ok
}

func mean(results []result, name string) (string, bool) {
	sum := 0.0
	linear := strings.HasSuffix(name, "delivered") || strings.HasSuffix(name, "wrong")
	for i := range results {
		v, ok := results[i].number(name)
		switch {
		case !ok:
			return "", false
		case linear:
			sum += v
		default:
			sum += math.Log(v)
		}
	}
	sum /= float64(len(results))
	if !linear {
		sum = math.Exp(sum)
	}
	return show(name, sum), true
}

// number returns the number of a column: one of members; "total", the sum of payload and header; or
// the quotient of the totals of two codecs, as in "rle / paper". It returns false if the name is
// unknown.
func (r *result) number(name string) (float64, bool) {
	if a, b, ok := strings.Cut(name, " / "); ok {
		x, ok1 := r.number(a + " total")
		y, ok2 := r.number(b + " total")
		return x / y, ok1 && ok2
	}
	codec := r.Codecs[len(r.Codecs)-1]
	for _, c := range r.Codecs {
		for _, key := range []string{"name", "preset"} {
			if rest, ok := strings.CutPrefix(name, fmt.Sprint(c[key], " ")); ok {
				codec, name = c, rest
			}
		}
	}
	if name == "total" {
		payload, _ := codec[members["payload"]].(float64)
		header, _ := codec[members["header"]].(float64)
		return payload + header, true
	}
	v, ok := codec[members[name]].(float64)
	return v, ok
}

func show(name string, v float64) string {
	switch {
	case strings.HasSuffix(name, "delivered"):
		return fmt.Sprintf("%.2f %%", 100*v)
	case strings.HasSuffix(name, "ratio"):
		return fmt.Sprintf("%.3f", v)
	case strings.Contains(name, " / "):
		return fmt.Sprintf("%.2f", v)
	case strings.HasSuffix(name, "keyframes"), strings.HasSuffix(name, "wrong"), strings.HasSuffix(name, " ns"):
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
