// Package claims runs the commands of README.md that print figures, and compares the figures on the
// page with the output.
//
// A figure on the page may differ from the measured one by one unit of its last digit. The page has
// no figures that depend on the machine, such as CPU times.
package claims

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/internal/bench"
)

// Check returns an error for each figure of the page that differs by more, and for each statement
// that is not on the page. If the page changes, change the list of statements too. The working
// directory is lab.
func Check() error {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		return err
	}
	for _, r := range runs {
		line := "go run ./cmd/uplink bench --json " + r.arguments + traces
		if err := output(line, &r.results); err != nil {
			return err
		}
	}
	all := statements()
	for _, of := range []func() ([]statement, error){alternatives, prior, drift} {
		more, err := of()
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	return compare(string(text), all)
}

// run is a command of the page. It has one result per recording.
type run struct {
	arguments string
	results   []bench.Result
}

const traces = " testdata/traces/*.csv.gz"

var (
	presets    = &run{arguments: "--codec rle,adaptive --preset all --downlink 30 --seeds 8"}
	presets5   = &run{arguments: "--codec adaptive --preset all --downlink 30 --seeds 8 --loss 5%"}
	presets10  = &run{arguments: "--codec adaptive --preset all --downlink 30 --seeds 8 --loss 10%"}
	bursts     = &run{arguments: "--codec adaptive --preset all --downlink 30 --seeds 8 --loss 5% --burst 3"}
	noDownlink = &run{arguments: "--codec adaptive --preset all --seeds 8"}
	loss10     = &run{arguments: "--codec paper,adaptive --loss 10% --seeds 20"}
	loss20     = &run{arguments: "--codec paper,adaptive --loss 20% --seeds 20"}
	lossBursts = &run{arguments: "--codec paper,adaptive --loss 5% --burst 3 --seeds 20"}
	runs       = []*run{presets, presets5, presets10, bursts, noDownlink, loss10, loss20, lossBursts}
)

// output runs a command and decodes the JSON that it prints.
func output(line string, v any) error {
	fmt.Fprintln(os.Stderr, line)
	c := exec.Command("sh", "-c", line)
	c.Stderr, c.Dir = os.Stderr, ".."
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return json.Unmarshal(out, v)
}

// on returns the result of a codec, or of a preset, for recording i.
func (r *run) on(i int, name string) *bench.Counts {
	for j := range r.results[i].Codecs {
		if c := &r.results[i].Codecs[j]; c.Preset == name || c.Preset == "" && c.Name == name {
			return c
		}
	}
	panic(fmt.Sprintf("%s: no %s", r.arguments, name))
}

// mean returns the geometric mean over all recordings.
func (r *run) mean(name string, of func(*bench.Counts) float64) float64 {
	sum := 0.0
	for i := range r.results {
		sum += math.Log(of(r.on(i, name)))
	}
	return math.Exp(sum / float64(len(r.results)))
}

func (r *run) ratio(name string) float64 {
	return r.mean(name, func(c *bench.Counts) float64 { return c.WireRatio })
}

func (r *run) batched(name string) float64 {
	return r.mean(name, func(c *bench.Counts) float64 { return c.BatchedRatio })
}

func (r *run) batchedRLE(name string) float64 {
	return r.mean(name, func(c *bench.Counts) float64 { return c.BatchedRLERatio })
}

func (r *run) delivered(name string) float64 {
	return 100 * r.mean(name, func(c *bench.Counts) float64 { return c.DeliveredRatio })
}

func (r *run) delay(name string) float64 {
	return r.mean(name, func(c *bench.Counts) float64 { return c.DelayMsMean })
}

// names are the names of the presets in results, in the order of the page.
var names = []string{"low-latency", "balanced", "low-bandwidth"}

func of(f func(name string) float64) (values []float64) {
	for _, name := range names {
		values = append(values, f(name))
	}
	return values
}

// statement is a text of the page in which # stands for each of the figures.
type statement struct {
	text    string
	figures []float64
}

func statements() []statement {
	all := []statement{
		{"link carries # of the bits", of(presets.ratio)[1:2]},
		{
			"Batching alone reduces them to # of their number, and the codec reduces the rest to # of it",
			[]float64{presets.batched("balanced"), presets.ratio("balanced") / presets.batched("balanced")},
		},
		{
			"At 5 % independent packet loss it carries #, and # % of the calls arrive in time; with loss bursts of 3, it is # and # %",
			[]float64{presets5.ratio("balanced"), presets5.delivered("balanced"), bursts.ratio("balanced"), bursts.delivered("balanced")},
		},
		{"if it sends none, # becomes #", []float64{presets.ratio("balanced"), noDownlink.ratio("balanced")}},
		{"(1 at 30 Hz), # ms on average", of(presets.delay)[1:2]},
		{"(2 at 30 Hz), # ms on average", of(presets.delay)[2:]},
		{"| together, no loss | | # | # | # |", of(presets.ratio)},
		{"| the same batching without a codec | | # | # | # |", of(presets.batched)},
		{"| the same batching with `rle` | | # | # | # |", of(presets.batchedRLE)},
		{"| together, 5 % loss both ways | | # | # | # |", of(presets5.ratio)},
		{"| together, 10 % loss both ways | | # | # | # |", of(presets10.ratio)},
		{"does not batch: #.", []float64{presets.ratio("rle")}},
		{"| 10 % | # % | # | # |", []float64{loss10.delivered("adaptive"), loss10.ratio("adaptive"), loss10.ratio("paper")}},
		{"| 20 % | # % | # | # |", []float64{loss20.delivered("adaptive"), loss20.ratio("adaptive"), loss20.ratio("paper")}},
		{"| 5 % in bursts of 3 | # % | # | # |", []float64{lossBursts.delivered("adaptive"), lossBursts.ratio("adaptive"), lossBursts.ratio("paper")}},
	}
	lowLatency := []float64{math.Inf(1), 0}
	for i := range presets.results {
		saved := 100 * (1 - presets.on(i, names[0]).WireRatio)
		lowLatency = []float64{min(lowLatency[0], saved), max(lowLatency[1], saved)}
	}
	all = append(all, statement{"`LowLatency` saves # to # % without loss", lowLatency})
	rows := map[string]string{
		"portal2_coop_60hz": "Portal 2, commands at 60 Hz", "portal1_escape02_67hz": "Portal, commands at 67 Hz",
		"portal1_netclient_67hz": "Portal as a network client, 67 Hz", "rocketleague_solo_30hz": "Rocket League, a car at 30 Hz",
		"cubes_player_60hz": "simulated cube at 60 Hz",
	}
	for i := range presets.results {
		r := &presets.results[i]
		s := statement{text: "| " + rows[r.Trace] + " | # | # (#) | # (#) | # (#) |"}
		for _, name := range names {
			c := presets.on(i, name)
			kbits := c.WireBothBits * r.RateHz / 1000
			if len(s.figures) == 0 {
				s.figures = append(s.figures, c.FullWireBits*r.RateHz/1000)
			}
			s.figures = append(s.figures, kbits, c.WireRatio)
		}
		all = append(all, s)
	}
	return all
}

// alternatives compares the codec with general-purpose compressors, which takes some minutes.
func alternatives() ([]statement, error) {
	var out struct {
		Summary struct {
			Losses []float64 `json:"losses"`
			Ratios []struct {
				Loss []float64 `json:"at_each_loss"`
			} `json:"ratios_to_best_general_peer"`
		} `json:"summary"`
	}
	err := output("cd lab && go run . compare --json", &out)
	s := &out.Summary
	none, five := slices.Index(s.Losses, 0), slices.Index(s.Losses, 0.05)
	if err != nil || none < 0 || five < 0 || len(s.Ratios) != 2 {
		return nil, errors.Join(err, fmt.Errorf("compare: no ratios without loss and at 5 %%: %+v", s))
	}
	return []statement{
		{"`adaptive` needs # of the bits of the best", []float64{s.Ratios[0].Loss[none]}},
		{"At 5 % loss it needs #, if all repeat calls", []float64{s.Ratios[1].Loss[five]}},
	}, nil
}

// prior measures the gain of the built-in prior on the recordings that it was trained on.
func prior() ([]statement, error) {
	var out struct {
		Mean struct {
			Bits map[string]float64 `json:"bits"`
		} `json:"geometric_mean"`
	}
	err := output("go run ./cmd/uplink train --leave-one-out --json"+traces, &out)
	b := out.Mean.Bits
	return []statement{{"trained on the other four only, it needs # % more", []float64{100 * (b["generic"]/b["built-in"] - 1)}}}, err
}

// drift measures the error of the article's scheme on floats.
func drift() ([]statement, error) {
	var out struct {
		Fields []struct {
			Name  string `json:"name"`
			Spans []struct {
				Article struct {
					Mean float64 `json:"mean"`
				} `json:"article"`
			} `json:"spans"`
		} `json:"fields"`
	}
	err := output("cd lab && go run . drift --distance 1 --json ../testdata/traces/rocketleague_solo_30hz.csv.gz", &out)
	for _, f := range out.Fields {
		if last := len(f.Spans) - 1; f.Name == "Location" && last >= 0 {
			return []statement{{"shows # cm on average after five minutes", []float64{f.Spans[last].Article.Mean}}}, err
		}
	}
	return nil, errors.Join(err, errors.New("drift: no field Location"))
}

var space = regexp.MustCompile(`\s+`)

// compare returns an error for each statement that is not in the text, or whose figures differ.
func compare(text string, statements []statement) (err error) {
	text = space.ReplaceAllString(text, " ")
	for _, s := range statements {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(s.text), "#", `(\d+(?:\.\d+)?)`)
		stated := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if stated == nil {
			err = errors.Join(err, fmt.Errorf("the page does not state %q", s.text))
			continue
		}
		for i, want := range s.figures {
			got, bad := strconv.ParseFloat(stated[i+1], 64)
			_, digits, _ := strings.Cut(stated[i+1], ".")
			if unit := math.Pow10(-len(digits)); bad != nil || math.Abs(got-want) > unit {
				err = errors.Join(err, fmt.Errorf("%q states %s, measured %.4f", s.text, stated[i+1], want))
			}
		}
	}
	return err
}
