package control

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestOfferLimits(t *testing.T) {
	good := DownOffer{Name: "cubes", RateHz: 60, TickHz: 60}
	for name, change := range map[string]func(*DownOffer){
		"number":   func(o *DownOffer) { o.Number = MaxDown },
		"no name":  func(o *DownOffer) { o.Name = "" },
		"name":     func(o *DownOffer) { o.Name = strings.Repeat("x", MaxDownName+1) },
		"fields":   func(o *DownOffer) { o.Fields = make([]string, maxDownFields+1) },
		"no rate":  func(o *DownOffer) { o.RateHz = 0 },
		"NaN":      func(o *DownOffer) { o.RateHz = math.NaN() },
		"rate":     func(o *DownOffer) { o.RateHz = MaxDownRate + 1 },
		"no tick":  func(o *DownOffer) { o.TickHz = 0 },
		"negative": func(o *DownOffer) { o.Initial = -1 },
		"large":    func(o *DownOffer) { o.Initial = MaxInitial + 1 },
	} {
		o := good
		change(&o)
		if _, err := ParseOffer(must[[]byte](t)(o.Append(nil))[1:]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseOffer(must[[]byte](t)(good.Append(nil))[1:]); err != nil {
		t.Error(err)
	}
}

func TestMalformedReply(t *testing.T) {
	for _, b := range [][]byte{nil, {1}, {1, 1, 1}, {MaxDown, 1}, {1, byte(answers)}} {
		if _, _, err := ParseReply(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func FuzzOffer(f *testing.F) {
	o := DownOffer{Name: "cubes", Codec: "snapshot", Fields: []string{"a", "b"}, RateHz: 60, TickHz: 60, Initial: 1000}
	f.Add(must[[]byte](f)(o.Append(nil))[1:])
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseOffer(b)
		if err != nil {
			return
		}
		if got, err := ParseOffer(must[[]byte](t)(o.Append(nil))[1:]); err != nil || !reflect.DeepEqual(got, o) {
			t.Fatalf("%+v, %v, want %+v", got, err, o)
		}
	})
}
