package replication

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/control"
)

func TestOfferRoundTrip(t *testing.T) {
	o := Offer{Number: 15, Name: "cubes", Codec: "snapshot", Fields: []string{"Position vec3 resolution=0.1"}, RateHz: 60, TickHz: 60, Initial: MaxInitial, Hash: 1<<64 - 1}
	b, err := o.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	kind, body, err := control.Split(b)
	if err != nil || kind != control.Offer {
		t.Fatalf("type %v, %v", kind, err)
	}
	if got, err := ParseOffer(body); err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("got %+v, %v, want %+v", got, err, o)
	}
}

func TestOfferLimits(t *testing.T) {
	good := Offer{Name: "cubes", RateHz: 60, TickHz: 60}
	for name, change := range map[string]func(*Offer){
		"number":   func(o *Offer) { o.Number = MaxStreams },
		"no name":  func(o *Offer) { o.Name = "" },
		"name":     func(o *Offer) { o.Name = strings.Repeat("x", MaxName+1) },
		"fields":   func(o *Offer) { o.Fields = make([]string, maxFields+1) },
		"no rate":  func(o *Offer) { o.RateHz = 0 },
		"NaN":      func(o *Offer) { o.RateHz = math.NaN() },
		"rate":     func(o *Offer) { o.RateHz = MaxRate + 1 },
		"no tick":  func(o *Offer) { o.TickHz = 0 },
		"negative": func(o *Offer) { o.Initial = -1 },
		"large":    func(o *Offer) { o.Initial = MaxInitial + 1 },
	} {
		o := good
		change(&o)
		b, err := o.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseOffer(b[1:]); !errors.Is(err, control.ErrMalformed) {
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
		kind, body, err := control.Split(AppendReply(nil, 3, a))
		if err != nil || kind != control.Reply {
			t.Fatalf("type %v, %v", kind, err)
		}
		if n, got, err := parseReply(body); n != 3 || got != a || err != nil {
			t.Errorf("%d, %v, %v", n, got, err)
		}
	}
	for _, b := range [][]byte{nil, {1}, {1, 1, 1}, {MaxStreams, 1}, {1, byte(answers)}} {
		if _, _, err := parseReply(b); !errors.Is(err, control.ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func FuzzOffer(f *testing.F) {
	o := Offer{Name: "cubes", Codec: "snapshot", Fields: []string{"a", "b"}, RateHz: 60, TickHz: 60, Initial: 1000}
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
