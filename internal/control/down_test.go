package control

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestOfferRoundTrip(t *testing.T) {
	o := DownOffer{Number: 15, Name: "cubes", Codec: "snapshot", Fields: []string{"Position vec3 resolution=0.1"}, RateHz: 60, TickHz: 60, Initial: MaxInitial, Hash: 1<<64 - 1}
	b, err := o.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	kind, body, err := Split(b)
	if err != nil || kind != Offer {
		t.Fatalf("type %v, %v", kind, err)
	}
	if got, err := ParseOffer(body); err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("got %+v, %v, want %+v", got, err, o)
	}
}

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
		b, err := o.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseOffer(b[1:]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := good.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseOffer(b[1:]); err != nil {
		t.Error(err)
	}
}

func TestReply(t *testing.T) {
	for a := range answers {
		kind, body, err := Split(AppendReply(nil, 3, a))
		if err != nil || kind != Reply {
			t.Fatalf("type %v, %v", kind, err)
		}
		if n, got, err := ParseReply(body); n != 3 || got != a || err != nil {
			t.Errorf("%d, %v, %v", n, got, err)
		}
	}
	for _, b := range [][]byte{nil, {1}, {1, 1, 1}, {MaxDown, 1}, {1, byte(answers)}} {
		if _, _, err := ParseReply(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func FuzzOffer(f *testing.F) {
	o := DownOffer{Name: "cubes", Codec: "snapshot", Fields: []string{"a", "b"}, RateHz: 60, TickHz: 60, Initial: 1000}
	b, err := o.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[1:])
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseOffer(b)
		if err != nil {
			return
		}
		again, err := o.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseOffer(again[1:]); err != nil || !reflect.DeepEqual(got, o) {
			t.Fatalf("%+v, %v, want %+v", got, err, o)
		}
	})
}
