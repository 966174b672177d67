package packed

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// row is a row of the table: the size of a vector whose largest component is between two
// magnitudes.
type row struct {
	Above float64  `json:"above"`
	UpTo  *float64 `json:"up_to"`
	Bits  int      `json:"bits"`
}

// inside returns numbers at both ends of the row. For positive numbers the lower end belongs to the
// row, for negative ones the upper end, since halves are rounded up.
func (r row) inside() []float64 {
	const near = 1e-6
	in := []float64{r.Above, -r.Above - near}
	if r.UpTo != nil {
		in = append(in, *r.UpTo-near, -*r.UpTo)
	} else {
		in = append(in, 2*r.Above, -1e30)
	}
	return in
}

// TestPackedVectorBitsMatchesTable compares the sizes of vectors and of frames with those that the
// article lists.
func TestPackedVectorBitsMatchesTable(t *testing.T) {
	data, err := os.ReadFile("testdata/netquantize10.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Scale   float64 `json:"scale"`
		MaxBits int     `json:"max_bits_per_component"`
		Rows    []row   `json:"rows"`
	}
	if err := json.Unmarshal(data, &table); err != nil || len(table.Rows) != 24 {
		t.Fatalf("%d rows, want one for each header below 24; %v", len(table.Rows), err)
	}
	s := mustSchema(t, schema.Field{Name: "Location", Kind: schema.KindVec3, Resolution: 0.1})
	f := s.NewFrame()
	for _, r := range table.Rows {
		for i, x := range slices.Concat(r.inside(), r.inside(), r.inside()) {
			v := make([]float64, 3)
			v[i%3] = x
			if got := VectorBits(v, table.Scale, table.MaxBits); got != r.Bits {
				t.Errorf("%v: %d bits, want %d", v, got, r.Bits)
			}
			err := s.QuantizeField(f, 0, v)
			if outside := new(schema.RangeError); errors.As(err, &outside) != (r.UpTo == nil) {
				t.Errorf("%v: %v", x, err)
			}
			if got := Of(s).FullBits(f); err == nil && got != r.Bits {
				t.Errorf("%v: %d bits, want %d", x, got, r.Bits)
			}
		}
	}
}

// TestPackedVectorBitsOfRelatives covers the other quantized vectors of the engine and numbers that
// it clamps.
func TestPackedVectorBitsOfRelatives(t *testing.T) {
	for _, c := range []struct {
		v       []float64
		scale   float64
		maxBits int
		want    int
	}{
		{[]float64{0, 0, 0}, 1, 20, 5 + 3*2},             // NetQuantize: header below 20 in 4 or 5 bits
		{[]float64{16, 0, 0}, 1, 20, 4 + 3*6},            // headers 4 to 15 leave no room for a fifth
		{[]float64{0, 1 << 19, 0}, 1, 20, 5 + 3*21},      // header 19
		{[]float64{0, 1 << 40, 0}, 1, 20, 5 + 3*21},      // clamped
		{[]float64{1.23, 0, 0}, 100, 24, 5 + 3*8},        // NetQuantize100: 123 has 7 bits
		{[]float64{7}, 1, 24, 5 + 4},                     // one number
		{[]float64{1, 2}, 10, 24, 5 + 2*6},               // two: 20 has 5 bits
		{[]float64{math.NaN(), 0, 0}, 1, 24, 5 + 3*25},   // not a number: clamped
		{[]float64{0, 0, math.Inf(-1)}, 1, 24, 5 + 3*25}, // clamped
		{[]float64{0, 0, 1}, 1, 1, 0 + 3*2},              // one header left
		{[]float64{0, 0, 1 << 30}, 1, 1 << 20, 5 + 3*32}, // no wider than 31
	} {
		if got := VectorBits(c.v, c.scale, c.maxBits); got != c.want {
			t.Errorf("VectorBits(%v, %v, %d) = %d, want %d", c.v, c.scale, c.maxBits, got, c.want)
		}
	}
}
