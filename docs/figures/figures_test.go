package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const before = `# Results

    go run ./cmd/uplink bench --distance 6 a.csv
    go run ./cmd/uplink bench --distance 3 b.csv c.csv

Bits a frame:

| trace | payload | expected | paper header | delivered | wrong |
| --- | ---: | ---: | ---: | ---: | ---: |
| b | 1.0 | 7.0 |
| elsewhere | 5.0 | 5.0 | 64.0 | 1.0 % | 0 |
| a | 2.0 | 8.0 | 1 | 2 | 3 |

    go run ./cmd/uplink drift a.csv

` + "```text\nold\n```" + `

    go run ./cmd/uplink bench d.csv

Not shown here.

| trace | payload |
| --- | --- |
| a | 9 |

    go run ./cmd/uplink soak --for 30m

| trace | payload |
| --- | --- |
| a | 9 |
`

const after = `# Results

    go run ./cmd/uplink bench --distance 6 a.csv
    go run ./cmd/uplink bench --distance 3 b.csv c.csv

| trace | payload | expected | paper header | delivered | wrong |
`

func fake(line string) (string, error) {
	const codecs = `"codecs": [{"name": "paper", "header_bits_per_frame": 64, "payload_bits_per_frame": 1},
		{"name": "rle", "header_bits_per_frame": 16, "payload_bits_per_frame": 110.26, "delivered_ratio": 0.951, "mismatches": 0}]}`
	switch line {
	case "go run ./cmd/uplink bench --distance 6 a.csv --json":
		return `{"trace": "a", ` + codecs, nil
	case "go run ./cmd/uplink bench --distance 3 b.csv c.csv --json":
		return `[{"trace": "b", ` + codecs + `, {"trace": "c", ` + codecs + `]`, nil
	case "go run ./cmd/uplink drift a.csv":
		return "new\nlines\n\n", nil
	}
	return "", errors.New(line)
}

func TestRefresh(t *testing.T) {
	text := strings.Replace(before, "Bits a frame:\n\n", "", 1)
	got, err := refresh(text, fake)
	if err != nil {
		t.Fatal(err)
	}
	want := after + `| --- | ---: | ---: | ---: | ---: | ---: |
| a | 110.3 | 8.0 | 64.0 | 95.10 % | 0 |
| b | 110.3 | 7.0 | 64.0 | 95.10 % | 0 |
| c | 110.3 |  | 64.0 | 95.10 % | 0 |
| elsewhere | 5.0 | 5.0 | 64.0 | 1.0 % | 0 |

    go run ./cmd/uplink drift a.csv

` + "```text\nnew\nlines\n```" + text[strings.Index(text, "\n\n    go run ./cmd/uplink bench d.csv"):]
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, err := refresh(got, fake); again != got || err != nil {
		t.Errorf("a second time changes it: %v\n%s", err, again)
	}
}

// TestTextBetween leaves a table alone that does not follow its commands at once.
func TestTextBetween(t *testing.T) {
	if got, err := refresh(before, fake); err != nil || !strings.Contains(got, "| b | 1.0 | 7.0 |\n") {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestWrong shows no figures of a codec that is broken.
func TestWrong(t *testing.T) {
	_, err := refresh(before, func(line string) (string, error) {
		said, err := fake(line)
		return strings.ReplaceAll(said, `"mismatches": 0`, `"mismatches": 2`), err
	})
	if err != nil {
		t.Errorf("%v, though no table follows at once", err)
	}
	_, err = refresh(strings.Replace(before, "Bits a frame:\n\n", "", 1), func(line string) (string, error) {
		said, err := fake(line)
		return strings.ReplaceAll(said, `"mismatches": 0`, `"mismatches": 2`), err
	})
	if err == nil || err.Error() != "a: frames differ from what was sent" {
		t.Error(err)
	}
}

// TestOtherModule runs the commands of a module of its own.
func TestOtherModule(t *testing.T) {
	const text = "    cd bench && go run .\n\nText.\n\n    cd bench && go run . --frames 1000\n\n```text\nold\n```\n"
	got, err := refresh(text, func(line string) (string, error) { return line + "\n", nil })
	if want := strings.Replace(text, "old", "cd bench && go run . --frames 1000", 1); got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestPictures runs the commands that draw, though their output is not shown.
func TestPictures(t *testing.T) {
	ran := 0
	const text = "    go run ./cmd/uplink bench --svg a.svg b.csv\n\nText.\n\n    go run ./cmd/uplink bench c.csv\n\nText.\n"
	got, err := refresh(text, func(line string) (string, error) {
		ran++
		if line != "go run ./cmd/uplink bench --svg a.svg b.csv" {
			t.Errorf("%s", line)
		}
		return "much", nil
	})
	if ran != 1 || got != text || err != nil {
		t.Errorf("%d commands, %v:\n%s", ran, err, got)
	}
}

func TestSaved(t *testing.T) {
	r := result{Codecs: []map[string]any{{"name": "rle", "full_wire_bits_per_frame": 400.0, "wire_bits_per_frame": 300.0}}}
	if got, ok := r.cell("saved"); got != "25.0 %" || !ok {
		t.Error(got, ok)
	}
}

// TestTotals shows what is computed: sums, quotients, and all traces together.
func TestTotals(t *testing.T) {
	two := func(trace string, paper, rle float64) result {
		return result{Trace: trace, Codecs: []map[string]any{
			{"name": "paper", "payload_bits_per_frame": paper, "header_bits_per_frame": 64.0, "delivered_ratio": 0.9, "mismatches": 0.0},
			{"name": "rle", "payload_bits_per_frame": rle, "header_bits_per_frame": 16.0, "delivered_ratio": 1.0, "mismatches": 0.0},
		}}
	}
	got := fillTable([]string{
		"| trace | paper total | rle total | rle / paper | paper delivered | rle wrong |", "| --- |", "| together | 1 |",
	}, []result{two("a", 36, 9), two("b", 336, 84)})
	want := []string{
		"| trace | paper total | rle total | rle / paper | paper delivered | rle wrong |", "| --- |",
		"| a | 100.0 | 25.0 | 0.25 | 90.00 % | 0 |",
		"| b | 400.0 | 100.0 | 0.25 | 90.00 % | 0 |",
		"| together | 200.0 | 50.0 | 0.25 | 90.00 % | 0 |",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.md")
	if err := os.WriteFile(path, []byte("    go run ./cmd/uplink drift no.csv\n\n```text\nold\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := update(path, fake); err == nil || err.Error() != "go run ./cmd/uplink drift no.csv" {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "old") {
		t.Errorf("a command that failed changed the file: %v\n%s", err, text)
	}
	if err := os.WriteFile(path, []byte("    go run ./cmd/uplink drift a.csv\n\n```text\nold\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := update(path, fake); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "\nnew\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
