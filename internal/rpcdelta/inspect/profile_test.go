package inspect

import (
	"reflect"
	"testing"

	"github.com/uplink-rpc/uplink/schema"
)

// TestProfileAdd checks that Add covers all fields of a profile.
func TestProfileAdd(t *testing.T) {
	s, err := schema.New("Test", 60, []schema.Field{{Name: "A", Kind: schema.KindVec2, Resolution: 1}})
	if err != nil {
		t.Fatal(err)
	}
	fill := func(n uint64) *Profile {
		p := NewProfile(s)
		var set func(v reflect.Value)
		set = func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					set(v.Field(i))
				}
			case reflect.Slice, reflect.Array:
				for i := range v.Len() {
					set(v.Index(i))
				}
			case reflect.Uint64:
				v.SetUint(n)
			case reflect.Float64:
				v.SetFloat(float64(n))
			case reflect.String:
			default:
				t.Fatalf("a profile has a %v", v.Type())
			}
		}
		set(reflect.ValueOf(p).Elem())
		return p
	}
	sum := fill(7)
	sum.Add(fill(3))
	if want := fill(10); !reflect.DeepEqual(sum, want) {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

// TestPredictorNames checks that each predictor has its own name.
func TestPredictorNames(t *testing.T) {
	seen := map[string]bool{"": true}
	for i := range NPredictors {
		if n := PredictorName(i); seen[n] {
			t.Errorf("predictor %d is %q", i, n)
		} else {
			seen[n] = true
		}
	}
}
