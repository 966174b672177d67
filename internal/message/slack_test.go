package message

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestSlack checks the resolution of 0.1 ms and the range of reports on the wire.
func TestSlack(t *testing.T) {
	const unit = 100 * time.Microsecond
	in := []Buffered{
		{RPC: 3, Slack: -1234 * unit, Target: 567 * unit, Rate: 0.9123, Missing: 65535, Late: 1},
		{RPC: 255, Slack: 12*unit + unit/2 - 1, Target: unit / 2, Rate: 1 + 0.4e-4},
		{Slack: time.Hour, Target: time.Hour, Rate: 3},
		{Slack: -time.Hour, Target: -time.Hour, Rate: 0},
	}
	want := []Buffered{
		in[0],
		{RPC: 255, Slack: 12 * unit, Target: unit, Rate: 1},
		{Slack: 32767 * unit, Target: 65535 * unit, Rate: 2},
		{Slack: -32768 * unit, Rate: 0.25},
	}
	b := AppendSlack(nil, len(in))
	for i := range in {
		b = in[i].Append(b)
	}
	b = append(b, "acks"...)
	typ, body, err := Split(b)
	if typ != Slack || err != nil {
		t.Fatal(typ, err)
	}
	got, acks, err := ParseSlack(nil, body)
	if err != nil || !slices.Equal(got, want) || string(acks) != "acks" {
		t.Errorf("%+v, %q, %v, want %+v", got, acks, err, want)
	}
	for _, rate := range []byte{0, 255} { // 0 and 6.5535
		bad := slices.Clone(body)
		bad[6], bad[7] = rate, rate
		if _, _, err := ParseSlack(nil, bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("a rate of %d: %v", rate, err)
		}
	}
	for n := range len(body) - len("acks") {
		if _, _, err := ParseSlack(nil, body[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}
