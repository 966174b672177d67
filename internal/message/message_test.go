package message

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/codec/msgpack"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
)

func testSchema(t *testing.T, fields ...schema.Field) *schema.Schema {
	t.Helper()
	return check.Value(schema.New("Move", 60, fields))(t)
}

// roundTrip checks the type of an encoded message, and that parse returns want.
func roundTrip[T any](t *testing.T, b []byte, err error, kind Type, parse func([]byte) (T, error), want T) {
	t.Helper()
	got, body, splitErr := Split(b)
	if err != nil || splitErr != nil || got != kind {
		t.Fatalf("type %v (%v, %v), want %v", got, err, splitErr, kind)
	}
	if got, err := parse(body); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestRoundTrip(t *testing.T) {
	r := BindRequest{RPC: 7, Name: "Move", Fingerprint: 1 << 63, Fields: []uint16{1, 65535}, RateHz: 66.67, Ring: 64, Codec: "rle", Reliable: true, Frames: 8, Prior: 1<<64 - 2, PerTick: []int64{-1 << 40, 7}}
	b, err := r.Append(nil)
	roundTrip(t, b, err, Bind, ParseBindRequest, r)
	a := BindAnswer{RPC: 7, Ring: 32, Reason: ReasonSchema, Field: 3, Theirs: "Aim angle bits=16", Known: []string{"a", "b"}, Prior: 1 << 63}
	b, err = a.Append(nil)
	roundTrip(t, b, err, Bound, ParseBindAnswer, a)
}

// TestRequestNumber checks that a request for a number that no header holds is an error, and does
// not mean the number's low 8 bits.
func TestRequestNumber(t *testing.T) {
	type request struct {
		_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells msgpack to leave the names out

		RPC         int64
		Name        string
		Fingerprint uint64
		Fields      []uint16
		RateHz      float64
		Ring        int
		Codec       string
		Reliable    bool
		Frames      int
		Prior       uint64
		Batch       int
		Deadline    int
		PerTick     []int64
		Described   []Described
	}
	for n, ok := range map[int64]bool{
		0: true, 44: true, rpcdelta.MaxRPC: true,
		rpcdelta.MaxRPC + 1: false, 300: false, 1<<16 + 44: false, 1<<32 + 44: false, math.MaxInt64: false,
		-1: false, -212: false, math.MinInt64: false,
	} {
		r, err := ParseBindRequest(check.Value(msgpack.AppendMarshal(nil, &request{RPC: n, Name: "Move"}))(t))
		if (err == nil) != ok || ok && (int64(r.RPC) != n || r.Name != "Move") || !ok && !errors.Is(err, ErrMalformed) {
			t.Errorf("number %d: %+v, %v", n, r, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		in   []byte
		want Type
		ok   bool
	}{
		{[]byte{0x00, 0x01}, Frame, true},
		{[]byte{0x01, 0x01}, Frame, true},
		{[]byte{0xbf, 0x01}, Frame, true},
		{[]byte{byte(Acks), 1}, Acks, true},
		{[]byte{byte(Bind)}, Bind, true},
		{[]byte{byte(Handover)}, Handover, true},
		{[]byte{byte(Bundle)}, Bundle, true},
		{[]byte{byte(Bundle) | bundleMask, 1}, Bundle, true},
		{[]byte{byte(Bundle) + bundleMask + 1}, Down, true},
		{[]byte{0xff}, Down, true},
		{[]byte{0xd0}, DownFragment, true},
		{[]byte{0xdf, 1}, DownFragment, true},
		{[]byte{byte(DownAck), 1}, DownAck, true},
		{[]byte{byte(Slack), 0}, Slack, true},
		{[]byte{byte(WithAcks), 1}, WithAcks, true},
		{[]byte{byte(WithSlack), 1}, WithSlack, true},
		{[]byte{byte(GameMessage), 2}, GameMessage, true},
		{[]byte{byte(Request), 2}, Request, true},
		{[]byte{byte(Bundle) &^ Mask}, Frame, true},
		{nil, 0, false},
	} {
		got, _, err := Split(c.in)
		if got != c.want || (err == nil) != c.ok || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("Split(%x) = %v, %v", c.in, got, err)
		}
	}
}

// TestDescriptions describes one field more than those that both schemas have.
func TestDescriptions(t *testing.T) {
	location := schema.Field{Name: "Location", Kind: schema.KindVec3, Resolution: 0.1}
	buttons := schema.Field{Name: "Buttons", Kind: schema.KindBits, Width: 16}
	server := testSchema(t, location, buttons)
	client := testSchema(t, schema.Field{Name: "Extra", Kind: schema.KindBool}, buttons, location)
	r := BindRequest{Fields: FieldHashes(client)}
	want := []string{"", "Buttons bits width=16", "Location vec3 resolution=0.1"}
	if got, ask := r.Descriptions(server); !slices.Equal(got, want) || !slices.Equal(ask, []int{0}) {
		t.Errorf("%q, asks for %d", got, ask)
	}
	r.Described = []Described{{Field: 0, Description: "Extra bool"}, {Field: 3, Description: "none"}, {Field: -1}}
	want[0] = "Extra bool"
	if got, ask := r.Descriptions(server); !slices.Equal(got, want) || len(ask) != 0 {
		t.Errorf("%q, asks for %d", got, ask)
	}
}

// FuzzParse parses the messages of an input, which are entries. What is parsed is not larger than
// the message, and is appended as the same bytes.
func FuzzParse(f *testing.F) {
	r := BindRequest{RPC: 1, Name: "Move", Fields: []uint16{1, 2}, Codec: "rle"}
	a := BindAnswer{RPC: 1, Known: []string{"Move"}}
	bundler := NewBundler(100)
	for range 3 {
		bundler.Add([]byte("frame"))
	}
	var seeds [][]byte
	for _, m := range [][]byte{
		check.Value(r.Append(nil))(f),
		check.Value(a.Append(nil))(f),
		bundler.Take(),
		{byte(Slack), 1, 2, 3, 4, 5, 6, 0x28, 0x23, 8, 9, 10, 11, 12},
		{byte(Bind), 0xdd, 0xff, 0xff, 0xff, 0xff},
		{byte(WithAcks), 3, 0, 1, 2, byte(Down) | 1, 7, 8},
		{byte(WithSlack), 15, 1, 2, 3, 4, 5, 6, 0x28, 0x23, 8, 9, 10, 0, 1, 2, 3, byte(DownFragment), 7},
		{byte(WithAcks), 2, 0, byte(Down)},
		{byte(WithAcks), 1, 0, byte(Bundle), 1},
		{byte(DownAck), 1, 0, 1, 2, byte(DownAck), 2, 0x80, 0x4c, 0, 0x45, 0x10, 1},
		{byte(DownAck), 1, 0x80, 0x4c, 0},
		{byte(Bundle)},
		{byte(Bundle), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		seeds = append(seeds, entries.Of(m, false))
	}
	for k := range requestKinds {
		seeds = append(seeds, entries.Of(AppendRequest(nil, k, 1<<31, make([]byte, min(maxRequestBody[k], 10))), true))
	}
	h := testHandover(f)
	seeds = append(seeds, entries.Of(AppendHandover(nil, &h), true))
	h.Stream, h.Tick, h.Size = NoStream, 0, 0
	seeds = append(seeds, entries.Of(AppendHandover(nil, &h), true))
	x := corpus.Target{Parser: "message", Seeds: seeds, Inputs: 20_000, Check: func(t testing.TB, in []byte) {
		for b := range entries.All(in) {
			checkMessage(t, b)
		}
	}}
	x.Run(f)
}

func checkMessage(t testing.TB, b []byte) {
	t.Helper()
	kind, body, err := Split(b)
	if err != nil {
		return
	}
	switch kind {
	case Bind:
		if r, err := ParseBindRequest(body); err == nil && len(r.Fields)+len(r.Name) > len(body) {
			t.Fatalf("%+v of %d bytes", r, len(body))
		}
	case Bound:
		if a, err := ParseBindAnswer(body); err == nil && len(a.Known)+len(a.Theirs) > len(body) {
			t.Fatalf("%+v of %d bytes", a, len(body))
		}
	case Slack:
		all, acks, err := ParseSlack(nil, body)
		if err != nil {
			return
		}
		again := AppendSlack(nil, len(all))
		for i := range all {
			again = all[i].Append(again)
		}
		if again = append(again, acks...); !bytes.Equal(again, b) {
			t.Errorf("%x reads as %+v and %x", b, all, acks)
		}
	case WithAcks, WithSlack:
		acks, message, err := ParseWithAcks(body)
		if err != nil {
			return
		}
		if again := slices.Concat([]byte{b[0], byte(len(acks))}, acks, message); !bytes.Equal(again, b) {
			t.Errorf("%x reads as %x and %x", b, acks, message)
		}
		if next, _, err := Split(message); err != nil || next != Down && next != DownFragment {
			t.Errorf("%x is followed by %v, %v", b, next, err)
		}
	case DownAck:
		ack, message := CutDownAck(body)
		if !bytes.HasSuffix(body, message) || len(message) > 0 && len(ack)+len(message) != len(body) {
			t.Errorf("%x reads as %x and %x", b, ack, message)
		}
		if rest := SkipDownAcks(b); len(rest) > len(message) || len(rest) > 0 && rest[0] == byte(DownAck) {
			t.Errorf("%x without acks is %x", b, rest)
		}
	case Request:
		if k, id, rest, err := ParseRequest(body); err == nil && !bytes.Equal(AppendRequest(nil, k, id, rest), b) {
			t.Errorf("%x is kind %d of request %d with %x", b, k, id, rest)
		}
	case Handover:
		checkHandover(t, body)
	case Bundle:
		checkBundle(t, b, body)
	default:
	}
}

// TestCarriers checks how long acks wait for a message that carries them.
func TestCarriers(t *testing.T) {
	const ms, most = time.Millisecond, 100 * time.Millisecond
	start := time.Unix(0, 0)
	for name, c := range map[string]struct {
		left []time.Duration
		want time.Duration // from the last message on; 0: none is expected
	}{
		"none":        {nil, 0},
		"first":       {[]time.Duration{0}, 0},
		"regular":     {[]time.Duration{0, 16 * ms, 32 * ms, 48 * ms}, 32 * ms},
		"same tick":   {[]time.Duration{0, 16 * ms, 17 * ms, 18 * ms}, 30 * ms},
		"irregular":   {[]time.Duration{0, 48 * ms, 64 * ms}, 84 * ms},
		"rare":        {[]time.Duration{0, 500 * ms}, 2 * most},
		"after pause": {[]time.Duration{0, 16 * ms, 900 * ms, 916 * ms}, 175 * ms},
	} {
		var carriers Carriers
		var last time.Duration
		for _, at := range c.left {
			last = at
			carriers.Left(start.Add(at), most)
		}
		now := start.Add(last)
		until, ok := carriers.Until(now)
		if ok != (c.want != 0) || ok && until.Sub(now) != c.want {
			t.Errorf("%s: until %v later, %v, want %v", name, until.Sub(now), ok, c.want)
		}
		if _, ok := carriers.Until(until); ok || carriers.Interval() != 0 {
			t.Errorf("%s: a message is still expected", name)
		}
	}
}
