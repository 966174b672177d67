package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/token"
)

// TestMessageBounds parses messages with each number at the ends of its range, and next to them.
func TestMessageBounds(t *testing.T) {
	slack := func(n, size int) func() error {
		return func() error {
			_, _, err := ParseSlack(nil, append([]byte{byte(n)}, bytes.Repeat((&Buffered{Rate: 1}).Append(nil), size)...))
			return err
		}
	}
	rate := func(units uint16) func() error {
		return func() error {
			b := append([]byte{1}, (&Buffered{Rate: 1}).Append(nil)...)
			binary.LittleEndian.PutUint16(b[6:], units)
			_, _, err := ParseSlack(nil, b)
			return err
		}
	}
	differences := func(asking, answering int) func() error {
		return func() error {
			a := BindAnswer{Asking: make([]string, asking), Answering: make([]string, answering)}
			b, err := a.Append(nil)
			if err != nil {
				return err
			}
			_, err = ParseBindAnswer(b[1:])
			return err
		}
	}
	withAcks := func(n, size int) func() error {
		return func() error {
			b := append([]byte{byte(n)}, make([]byte, size)...)
			b[len(b)-1] = byte(Down)
			_, _, err := ParseWithAcks(b)
			return err
		}
	}
	request := func(k RequestKind, size int) func() error {
		return func() error {
			_, _, _, err := ParseRequest(AppendRequest(nil, k, 1<<32-1, make([]byte, size))[1:])
			return err
		}
	}
	servers := func(n int) func() error {
		return func() error {
			h := testHandover(t)
			for len(h.Servers) < n {
				h.Servers = append(h.Servers, h.Servers[0])
			}
			h.Servers = h.Servers[:n]
			_, err := ParseHandover(AppendHandover(nil, &h)[1:])
			return err
		}
	}
	frame := func(size uint64) func() error {
		return func() error {
			b := []byte{byte(Bundle)}
			for ; size >= 1<<7; size >>= 7 {
				b = append(b, byte(size)|1<<7)
			}
			f := ParseBundle(append(b, byte(size), 1, 2, 3))
			_, _, err := f.Next()
			return err
		}
	}
	for name, c := range map[string]struct {
		parse func() error
		ok    bool
	}{
		"no report":                 {slack(0, 0), false},
		"one report":                {slack(1, 1), true},
		"24 reports":                {slack(MaxBuffered, MaxBuffered), true},
		"25 reports":                {slack(MaxBuffered+1, MaxBuffered+1), false},
		"255 reports in 24":         {slack(255, MaxBuffered), false},
		"rate 0.25":                 {rate(2500), true},
		"rate below 0.25":           {rate(2499), false},
		"rate 2":                    {rate(20000), true},
		"rate above 2":              {rate(20001), false},
		"32 names of both ends":     {differences(MaxDifferences, MaxDifferences), true},
		"33 of the asking end":      {differences(MaxDifferences+1, 0), false},
		"33 of the answering end":   {differences(0, MaxDifferences+1), false},
		"no acks before a message":  {withAcks(0, 1), true},
		"acks without a message":    {withAcks(1, 1), false},
		"255 bytes of acks":         {withAcks(255, 256), true},
		"255 bytes of acks in 255":  {withAcks(255, 255), false},
		"request":                   {request(Ask, MaxMessage), true},
		"large request":             {request(Ask, MaxMessage+1), false},
		"refusal":                   {request(Refusal, MaxRefusal), true},
		"large refusal":             {request(Refusal, MaxRefusal+1), false},
		"cancel with a body":        {request(Cancel, 1), false},
		"unknown kind of a request": {request(requestKinds, 0), false},
		"no server":                 {servers(0), false},
		"one server":                {servers(1), true},
		"8 servers":                 {servers(token.MaxServers), true},
		"9 servers":                 {servers(token.MaxServers + 1), false},
		"an empty frame":            {frame(0), true},
		"a frame of all that is left": {
			frame(3), true,
		},
		"a frame of a byte more":  {frame(4), false},
		"a frame of 2^31 bytes":   {frame(1 << 31), false},
		"a frame of 2^32 + 1":     {frame(1<<32 + 1), false},
		"a frame of 2^63 bytes":   {frame(1 << 63), false},
		"a frame of 2^64-1 bytes": {frame(1<<64 - 1), false},
	} {
		if err := c.parse(); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
