package snapshot

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/uplink-rpc/uplink/internal/codec/lms"
)

// modelTable is one of the built-in models as docs/spec/snapshots.md describes it.
type modelTable struct {
	Position  [2][3][classes]lms.Weights     `json:"position"`
	Scale     [2][3][2 * classes]lms.Weights `json:"scale"`
	Roll      [2][3][5]lms.Weights           `json:"roll"`
	Turn      [3][2 * classes]lms.Weights    `json:"turn"`
	TurnScale [3][2 * classes]lms.Weights    `json:"turn_scale"`
	Number    [2][]prob                      `json:"number"`
	Quat      []prob                         `json:"quat"`
	Integer   []prob                         `json:"integer"`
	Same      [4][]prob                      `json:"same"`
	Object    []prob                         `json:"object"`
}

// TestTables compares docs/spec/tables/snapshots.json with the built-in models. With -update it
// writes the file.
func TestTables(t *testing.T) {
	const file = "../../docs/spec/tables/snapshots.json"
	m, s := prior()
	var tables struct {
		Models [modelCount]modelTable `json:"models"`
		Angle  []prob                 `json:"angle"`
	}
	for i, from := range m.models {
		to, l := &tables.Models[i], &s.layout
		for k := range from.motion {
			to.Position[k], to.Scale[k], to.Roll[k] = from.motion[k].position, from.motion[k].scale, from.motion[k].roll
			to.Number[k] = from.start[l.numbers[k]:][:numberKinds*integerSize]
		}
		to.Turn, to.TurnScale = from.turns[0].turn, from.turns[0].scale
		to.Quat, to.Integer = from.start[l.turns[0]:][:turnSize], from.start[l.flags[0]:][:flagContexts+2]
		for k, at := range l.same {
			to.Same[k] = from.start[at:][:sameSize]
		}
		to.Object = from.start[l.changed:]
	}
	tables.Angle = make([]prob, integerSize)
	for i := range tables.Angle {
		tables.Angle[i] = even
	}
	startInteger(tables.Angle)
	got, err := json.Marshal(tables)
	if err != nil {
		t.Fatal(err)
	}
	got = append(bytes.ReplaceAll(got, []byte(`,"`), []byte(",\n\"")), '\n')
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/spec/tables/snapshots.json differs from the built-in models: run this test with -update")
	}
}
