package wire

import (
	"errors"
	"testing"
)

// TestBodyBounds parses datagrams and bodies with each size and number at the ends of its range,
// and next to them.
func TestBodyBounds(t *testing.T) {
	closing := func(n int) func() error {
		return func() error {
			_, err := ParseClose(make([]byte, n))
			return err
		}
	}
	header := func(n int) func() error {
		return func() error {
			b := make([]byte, n)
			if n > 0 {
				b[0] = uint8(DataForm) << formShift
			}
			_, err := ParseHeader(b)
			return err
		}
	}
	grant := func(code Code, id uint64) func() error {
		return func() error {
			_, err := ParseGrant(AppendGrant(nil, Grant{Code: code, ID: id}))
			return err
		}
	}
	hello := func(route, message, rest int) func() error {
		return func() error {
			b := AppendHello(nil, Hello{Version: Version, Route: make([]byte, route), Message: make([]byte, message)})
			_, err := ParseHello(b[:len(b)+rest])
			return err
		}
	}
	answer := func(n int) func() error {
		return func() error {
			_, err := ParseProbeAnswer(make([]byte, n))
			return err
		}
	}
	challenge := func(n int) func() error {
		return func() error {
			_, err := ParseChallenge(make([]byte, n))
			return err
		}
	}
	response := func(n int) func() error {
		return func() error {
			_, err := ParseResponse(make([]byte, n))
			return err
		}
	}
	heartbeat := func(largest uint8) func() error {
		return func() error {
			_, err := ParseHeartbeat(AppendHeartbeat(nil, Heartbeat{Ask: 1, Largest: largest}))
			return err
		}
	}
	for name, c := range map[string]struct {
		parse func() error
		ok    bool
	}{
		"an empty datagram":         {header(0), false},
		"a byte":                    {header(1), false},
		"a header":                  {header(DataSize), true},
		"the largest datagram":      {header(MaxDatagram), true},
		"a larger datagram":         {header(MaxDatagram + 1), false},
		"an empty close":            {closing(0), false},
		"a close without a text":    {closing(1), true},
		"a close with a text":       {closing(1 + MaxCloseText), true},
		"a close with a long text":  {closing(2 + MaxCloseText), false},
		"a grant without a session": {grant(Granted, 0), false},
		"a grant":                   {grant(Granted, 1<<64-1), true},
		"the last code":             {grant(codes-1, 0), true},
		"an unknown code":           {grant(codes, 0), false},
		"a hello":                   {hello(0, 0, 0), true},
		"a hello without its end":   {hello(0, 0, -1), false},
		"a route":                   {hello(MaxRoute, 0, 0), true},
		"a long route":              {hello(MaxRoute+1, 0, 0), false},
		"a message":                 {hello(MaxRoute, MaxHelloMessage, 0), true},
		"a cut message":             {hello(MaxRoute, MaxHelloMessage, -1), false},
		"a long message":            {hello(MaxRoute, MaxHelloMessage+1, 0), false},
		"an answer to a probe":      {answer(2), true},
		"half an answer":            {answer(1), false},
		"a long answer":             {answer(3), false},
		"the largest report":        {heartbeat(Excess(MaxDatagram)), true},
		"a larger report":           {heartbeat(Excess(MaxDatagram) + 1), false},
		"a challenge":               {challenge(ChallengeSize), true},
		"a short challenge":         {challenge(ChallengeSize - 1), false},
		"a long challenge":          {challenge(ChallengeSize + 1), false},
		"a response":                {response(ChallengeSize + 1), true},
		"a short response":          {response(ChallengeSize), false},
		"a long response":           {response(ChallengeSize + 2), false},
	} {
		if err := c.parse(); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
