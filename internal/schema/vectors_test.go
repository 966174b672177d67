package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/vectors"
)

// number is a value in JSON, where numbers that are not finite, and negative zero, are strings.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) || v == 0 && math.Signbit(v) {
		return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

func numbers(v []float64) (out []number) {
	for _, x := range v {
		out = append(out, number(x))
	}
	return out
}

// valueVector has values of a field and their components, or none if the values cannot be sent.
type valueVector struct {
	Field      json.RawMessage `json:"field"`
	Values     []number        `json:"values"`
	Integers   []string        `json:"integers,omitempty"` // instead of values, of integers above 2^53
	Components []int32         `json:"components"`
	Restored   []number        `json:"restored,omitempty"`
}

func valueVectors(t *testing.T) (all []valueVector) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		field  string
		values [][]float64
	}{
		{`"kind":"scalar","resolution":0.1`, [][]float64{
			{0}, {.05}, {-.05}, {.049999999999999996}, {-.15}, {12.34}, {838860.7}, {-838860.7}, {838860.75}, {-838860.8}, {nan}, {inf}, {-inf},
		}},
		{`"kind":"scalar","resolution":0.3,"min":-1,"max":1`, [][]float64{{-1}, {1}, {-1.05}, {-1.06}, {1.04}, {1.05}, {0.45}}},
		{`"kind":"scalar","resolution":1,"min":-2147483647,"max":2147483647`, [][]float64{{2147483647}, {-2147483647.5}, {-2147483647.6}, {2147483647.5}}},
		{`"kind":"scalar","resolution":8,"count":2`, [][]float64{{4, -4}, {11.9, 12}}},
		{`"kind":"vec2","resolution":0.03125`, [][]float64{{1.015625, -1.015625}, {1, 262143.96875}}},
		{`"kind":"vec3","resolution":0.25`, [][]float64{{1.1, -1.1, .125}, {1, 2, nan}}},
		{`"kind":"angle","bits":8,"count":3`, [][]float64{{0, 360, -360}, {180, -180, 179.29}, {179.3, 1.40625, .703125}, {1e6, -1e6, 359.3}, {1e18, 0, 0}, {nan, 0, 0}}},
		{`"kind":"angle"`, [][]float64{{90}, {-.0027}, {359.998}, {-90}}},
		{`"kind":"angle","bits":24`, [][]float64{{123.456789}, {-1e-9}}},
		{`"kind":"quat","bits":3`, [][]float64{{0, 0, 0, 1}, {.5, .5, .5, .5}, {1, 1, 1, -1}}},
		{`"kind":"quat"`, [][]float64{
			{0, 0, 0, 1},
			{0, 0, 0, -2},
			{1, 0, 0, 0},
			{.5, -.5, .5, -.5},
			{-.5, .5, .5, .5},
			{.1, .2, .3, .4},
			{.7071067811865476, 0, 0, .7071067811865475},
			{1e-80, 0, 0, 1e-90},
			{0, 0, 0, 0},
			{1e-101, 0, 0, 0},
			{1e101, 0, 0, 0},
			{nan, 0, 0, 1},
			{inf, 0, 0, 1},
		}},
		{`"kind":"quat","bits":20`, [][]float64{{.18257418583505536, .3651483716701107, .5477225575051661, .7302967433402214}, {.1, -.9, .2, .3}}},
		{`"kind":"unitvec"`, [][]float64{
			{0, 0, 1}, {0, 0, -1}, {1, 0, 0}, {-1, 0, 0}, {0, -5, 0}, {1, 2, 3}, {-1, 2, -3}, {3, -2, -1}, {math.Copysign(0, -1), 0, -1}, {0, 0, 0}, {1e-101, 0, 0}, {nan, 0, 1},
		}},
		{`"kind":"unitvec","bits":20`, [][]float64{{.3, -.4, .5}, {.3, -.4, -.5}}},
		{`"kind":"uint","width":5`, [][]float64{{0}, {31}, {32}, {-1}, {1.5}, {nan}}},
		{`"kind":"uint","width":32`, [][]float64{{4294967295}, {2147483648}, {4294967296}}},
		{`"kind":"uint","width":40,"count":2`, [][]float64{{1099511627775, 4294967296}, {1, 1099511627776}}},
		{`"kind":"int","width":5`, [][]float64{{-16}, {15}, {16}, {-17}, {-1}}},
		{`"kind":"int","width":32`, [][]float64{{-2147483648}, {2147483647}, {2147483648}}},
		{`"kind":"int","width":40`, [][]float64{{-1}, {-549755813888}, {549755813887}, {4294967295}, {-4294967297}, {549755813888}}},
		{`"kind":"bits","width":33`, [][]float64{{8589934591}, {4294967296}, {8589934592}}},
		{`"kind":"bool","count":3`, [][]float64{{1, 0, 1}, {2, 0, 0}}},
	} {
		field := `{"name":"V",` + c.field + `}`
		s := parseField(t, field)
		for _, values := range c.values {
			f := s.NewFrame()
			v := valueVector{Field: json.RawMessage(field), Values: numbers(values)}
			outside := new(RangeError)
			switch err := s.QuantizeField(f, 0, values); {
			case err == nil:
				v.Components, v.Restored = f.Ints, numbers(s.RestoreField(nil, f, 0))
			case !errors.As(err, &outside):
				t.Fatal(err)
			}
			all = append(all, v)
		}
	}
	return append(all, wideVectors(t)...)
}

// wideVectors are integers that a double cannot represent.
func wideVectors(t *testing.T) (all []valueVector) {
	const signed, unsigned = `{"name":"V","kind":"int","width":64}`, `{"name":"V","kind":"uint","width":64}`
	s := parseField(t, unsigned)
	for _, x := range []uint64{0, 1<<32 - 1, 1 << 32, 1<<53 + 1, 1<<64 - 1, 0x123456789abcdef0} {
		f := s.NewFrame()
		if err := s.SetUint(f, 0, 0, x); err != nil || s.Uint(f, 0, 0) != x {
			t.Fatal(x, err)
		}
		all = append(all, valueVector{Field: json.RawMessage(unsigned), Integers: []string{strconv.FormatUint(x, 10)}, Components: f.Ints})
	}
	s = parseField(t, signed)
	for _, x := range []int64{-1, -1 << 32, -1<<32 - 1, math.MinInt64, math.MaxInt64, 1<<53 + 1} {
		f := s.NewFrame()
		if err := s.SetInt(f, 0, 0, x); err != nil || s.Int(f, 0, 0) != x {
			t.Fatal(x, err)
		}
		all = append(all, valueVector{Field: json.RawMessage(signed), Integers: []string{strconv.FormatInt(x, 10)}, Components: f.Ints})
	}
	return all
}

func parseField(t *testing.T, field string) *Schema {
	t.Helper()
	s, err := Parse([]byte(`{"rpc":"Vector","fields":[` + field + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// schemaVector is a schema with what both ends derive from it.
type schemaVector struct {
	Schema       json.RawMessage `json:"schema"`
	Descriptions []string        `json:"descriptions"`
	Hashes       []uint16        `json:"field_hashes"`
	Fingerprint  string          `json:"fingerprint"`
	Factors      []int64         `json:"velocity_factors"`
	Components   int             `json:"components"`
	Bytes        int             `json:"integer_and_string_bytes"`
}

func schemaVectors(t *testing.T) (all []schemaVector) {
	for _, text := range []string{
		`{"rpc":"One","fields":[{"name":"A","kind":"bool"}]}`,
		`{"rpc":"ServerMove","rate_hz":30,"fields":[` +
			`{"name":"Location","kind":"vec3","resolution":0.1,"velocity":"Velocity"},{"name":"Velocity","kind":"vec3","resolution":0.1,"velocity":"Acceleration","velocity_scale":100},` +
			`{"name":"Acceleration","kind":"vec3","resolution":0.001},{"name":"Aim","kind":"quat","velocity":"Spin"},{"name":"Spin","kind":"vec3","resolution":0.01,"min":-20,"max":20},` +
			`{"name":"View","kind":"angle","count":2,"bits":12},{"name":"Throttle","kind":"scalar","resolution":0.01,"min":0},{"name":"Dir","kind":"unitvec"},` +
			`{"name":"Tick","kind":"uint","width":48},{"name":"Delta","kind":"int","count":2,"width":9},{"name":"Buttons","kind":"bits","width":16},{"name":"Flags","kind":"bool","count":5},` +
			`{"name":"Tag","kind":"fixed","size":4},{"name":"Chat","kind":"bytes","max":200,"urgent":true}]}`,
		`{"rpc":"Numbers","rate_hz":60,"fields":[{"name":"A","kind":"scalar","resolution":1000000,"max":2000000000000},{"name":"B","kind":"scalar","resolution":123456},` +
			`{"name":"C","kind":"scalar","resolution":1234567.5},{"name":"D","kind":"scalar","resolution":0.0001},{"name":"E","kind":"scalar","resolution":1e-05,"velocity":"A","velocity_scale":-2000000},` +
			`{"name":"F","kind":"scalar","resolution":0.3333333333333333},{"name":"G","kind":"scalar","resolution":1,"velocity":"F","velocity_scale":0.5}]}`,
	} {
		s, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		v := schemaVector{Schema: json.RawMessage(text), Fingerprint: fmt.Sprintf("%016x", s.Fingerprint()), Factors: s.PerTick(), Components: s.Components(), Bytes: s.BinaryBytes()}
		for _, f := range s.Fields() {
			h := fnv.New32a()
			h.Write([]byte(f.String()))
			v.Descriptions, v.Hashes = append(v.Descriptions, f.String()), append(v.Hashes, uint16(h.Sum32()^h.Sum32()>>16))
		}
		all = append(all, v)
	}
	return all
}

// TestVectors writes or compares testdata/vectors/values.json.
func TestVectors(t *testing.T) {
	vectors.Check(t, "testdata/vectors/values.json",
		vectors.Section{Name: "values", Value: valueVectors(t)},
		vectors.Section{Name: "schemas", Value: schemaVectors(t)})
}
