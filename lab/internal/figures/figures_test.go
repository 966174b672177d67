package figures

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

    cd lab && go run . drift a.csv

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
	case "cd lab && go run . drift a.csv":
		return "new\nlines\n\n", nil
	}
	return "", errors.New(line)
}

func TestRefresh(t *testing.T) {
	text := strings.Replace(before, "Bits a frame:\n\n", "", 1)
	got, err := refresh(text, "", fake)
	if err != nil {
		t.Fatal(err)
	}
	want := after + `| --- | ---: | ---: | ---: | ---: | ---: |
| a | 110.3 | 8.0 | 64.0 | 95.10 % | 0 |
| b | 110.3 | 7.0 | 64.0 | 95.10 % | 0 |
| c | 110.3 |  | 64.0 | 95.10 % | 0 |
| elsewhere | 5.0 | 5.0 | 64.0 | 1.0 % | 0 |

    cd lab && go run . drift a.csv

` + "```text\nnew\nlines\n```" + text[strings.Index(text, "\n\n    go run ./cmd/uplink bench d.csv"):]
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, err := refresh(got, "", fake); again != got || err != nil {
		t.Errorf("a second time changes it: %v\n%s", err, again)
	}
}

// TestWrong shows no figures of a codec that is broken, and leaves a table alone that does not
// follow its commands at once.
func TestWrong(t *testing.T) {
	broken := func(line string) (string, error) {
		said, err := fake(line)
		return strings.ReplaceAll(said, `"mismatches": 0`, `"mismatches": 2`), err
	}
	if got, err := refresh(before, "", broken); err != nil || !strings.Contains(got, "| b | 1.0 | 7.0 |\n") {
		t.Errorf("%v, though no table follows at once\n%s", err, got)
	}
	_, err := refresh(strings.Replace(before, "Bits a frame:\n\n", "", 1), "", broken)
	if err == nil || err.Error() != "a: frames differ from what was sent" {
		t.Error(err)
	}
}

// TestOtherModule runs the commands of a module of its own.
func TestOtherModule(t *testing.T) {
	const text = "    cd lab && go run . compare\n\nText.\n\n    cd lab && go run . compare --frames 1000\n\n```text\nold\n```\n"
	got, err := refresh(text, "", func(line string) (string, error) { return line + "\n", nil })
	if want := strings.Replace(text, "old", "cd lab && go run . compare --frames 1000", 1); got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestMatch leaves the results of other commands alone.
func TestMatch(t *testing.T) {
	const text = "    cd lab && go run . compare\n\n```text\na\n```\n\n    cd lab && go run . drift a.csv\n\n```text\nold\n```\n"
	got, err := refresh(text, "drift", fake)
	if want := strings.Replace(text, "old", "new\nlines", 1); got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestPictures runs the commands that draw, though their output is not shown.
func TestPictures(t *testing.T) {
	ran := 0
	const text = "    go run ./cmd/uplink bench --svg a.svg b.csv\n\nText.\n\n    go run ./cmd/uplink bench c.csv\n\nText.\n"
	got, err := refresh(text, "", func(line string) (string, error) {
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

// TestTotals shows what is computed: sums, quotients, and all traces together.
func TestTotals(t *testing.T) {
	two := func(trace string, paper, rle float64) result {
		return result{Trace: trace, Codecs: []map[string]any{
			{"name": "paper", "payload_bits_per_frame": paper, "header_bits_per_frame": 64.0, "delivered_ratio": 0.9, "mismatches": 0.0},
			{
				"name": "rle", "payload_bits_per_frame": rle, "header_bits_per_frame": 16.0, "delivered_ratio": 1.0, "mismatches": 0.0,
				"wire_ratio": 0.75,
			},
		}}
	}
	got := fillTable([]string{
		"| trace | paper total | rle total | rle / paper | paper delivered | rle wrong | wire ratio |", "| --- |", "| together | 1 |",
	}, []result{two("a", 36, 9), two("b", 336, 84)})
	want := []string{
		"| trace | paper total | rle total | rle / paper | paper delivered | rle wrong | wire ratio |", "| --- |",
		"| a | 100.0 | 25.0 | 0.25 | 90.00 % | 0 | 0.750 |",
		"| b | 400.0 | 100.0 | 0.25 | 90.00 % | 0 | 0.750 |",
		"| together | 200.0 | 50.0 | 0.25 | 90.00 % | 0 | 0.750 |",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestUpdate changes a file, unless a command fails.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.md")
	for trace, want := range map[string]string{"no.csv": "old", "a.csv": "new\nlines"} {
		page := "    cd lab && go run . drift " + trace + "\n\n```text\n"
		if err := os.WriteFile(path, []byte(page+"old\n```\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := update(path, "", fake)
		text, readErr := os.ReadFile(path)
		if (err != nil) != (want == "old") || readErr != nil || string(text) != page+want+"\n```\n" {
			t.Errorf("%v, %v\n%s", err, readErr, text)
		}
	}
}
