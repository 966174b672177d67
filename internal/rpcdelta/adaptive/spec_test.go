package adaptive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/uplinktest/repo"
	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// specTables returns the tables of docs/spec/adaptive.md.
func specTables() []vectors.Section {
	type flags struct {
		Bias  []int16     `json:"bias"`
		W     flagWeights `json:"w"`
		FBias int16       `json:"flag_bias"`
		FW    flagWeights `json:"flag_w"`
	}
	m := &Model{quats: 1}
	s := m.newState()
	s.reset(m)
	shares := make([]int16, MaxRing+1)
	for d := range shares {
		shares[d] = spans[d].share
	}
	weights := map[string][][]int16{}
	for f, name := range [families]string{"plain", "angled", "derived", "turned", "extrapolated"} {
		for c := range classes {
			w := initialWeights[f][c]
			weights[name] = append(weights[name], w[:weightCount[f]])
		}
	}
	p := Generic()
	var kinds [][]int32
	for _, k := range p.kinds {
		kinds = append(kinds, append([]int32{}, k...))
	}
	return []vectors.Section{
		{Name: "squash", Value: squash},
		{Name: "share", Value: shares},
		{Name: "size", Value: magnitudes},
		{Name: "seed", Value: quat.SqrtSeed()},
		{Name: "index", Value: s.bitModels.index[0]},
		{Name: "flags", Value: flags{initialBias[:], initialGroupWeights, initialCompFlag.bias, initialCompFlag.w}},
		{Name: "weights", Value: weights},
		{Name: "prior", Value: map[string]any{
			"hash": fmt.Sprintf("%016x", p.hash), "kinds": kinds, "fields": len(p.fields), "frequencies": p.freq,
		}},
	}
}

// specMarkers enclose the generated part of docs/spec/adaptive.md.
const (
	specBegin = "<!-- generated: go test ./internal/rpcdelta/adaptive -run TestSpecTables -update -->\n"
	specEnd   = "<!-- end -->\n"
)

// TestSpecTables compares docs/spec/tables/adaptive.json and the tables of docs/spec/adaptive.md
// with the code. With -update it writes them.
func TestSpecTables(t *testing.T) {
	tables := specTables()
	vectors.Check(t, "docs/spec/tables/adaptive.json", tables...)

	const page = "docs/spec/adaptive.md"
	text, err := os.ReadFile(filepath.Join(repo.Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), specBegin)
	_, after, ends := strings.Cut(rest, specEnd)
	if !ok || !ends {
		t.Fatalf("%s lacks the marks of the generated part", page)
	}
	var out bytes.Buffer
	out.WriteString(before + specBegin)
	for _, s := range tables {
		switch s.Name {
		case "prior":
			p := Generic()
			fmt.Fprintf(&out, "\n### Built-in prior\n\nHash `%016x`, no fields. Kinds that are missing have no list.\n\n| kind | list |\n| ---: | --- |\n", p.hash)
			for i, k := range p.kinds {
				if len(k) > 0 {
					fmt.Fprintf(&out, "| %d | %s |\n", i, strings.Join(strings.Fields(strings.Trim(fmt.Sprint(k), "[]")), " "))
				}
			}
		case "weights":
			out.WriteString("\n### `weights`\n\n| family | class 0 | class 1 | class 2 |\n| --- | --- | --- | --- |\n")
			for f, name := range []string{"plain, angled", "", "derived", "turned", "extrapolated"} {
				if name != "" {
					w := &initialWeights[f]
					n := weightCount[f]
					fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", name, list(w[0][:n]), list(w[1][:n]), list(w[2][:n]))
				}
			}
		case "flags":
			fmt.Fprintf(&out, "\n### `flags`\n\n| number | start |\n| --- | --- |\n| `bias` | %s |\n| `w` | %s |\n| `flag_bias` | %d |\n| `flag_w` | %s |\n",
				list(initialBias[:]), list(initialGroupWeights[:]), initialCompFlag.bias, list(initialCompFlag.w[:]))
		default:
			fmt.Fprintf(&out, "\n### `%s`\n\n```text\n%s```\n", s.Name, columns(s.Value))
		}
	}
	out.WriteString("\n" + specEnd + after)
	vectors.Compare(t, page, out.Bytes())
}

func list[T any](v []T) string { return strings.Trim(fmt.Sprint(v), "[]") }

// columns returns the numbers of an array in lines of eight, each with the index of its first
// number.
func columns(v any) string {
	var out strings.Builder
	numbers := strings.Fields(strings.Trim(fmt.Sprint(v), "[]"))
	for i, n := range numbers {
		if i%8 == 0 {
			fmt.Fprintf(&out, "%4d:", i)
		}
		fmt.Fprintf(&out, " %10s", n)
		if i%8 == 7 || i == len(numbers)-1 {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
