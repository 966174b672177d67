package client

import (
	"errors"
	"fmt"
	"slices"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// final gives the error with which a connection ends for good after err, be it that of
// its end or of making it again; nil if something is left to be tried.
func (c Config) final(err error) error {
	is := func(e error) bool { return errors.Is(err, e) }
	switch {
	case is(transport.ErrClosedByPeer):
		return fmt.Errorf("%w: %w", ErrKicked, err)
	case is(transport.ErrReplaced), c.spent() && slices.ContainsFunc(tokenErrors, is):
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

// spent says that there is no other token than the one that Dial showed.
func (c Config) spent() bool { return c.Token != token.Token{} && c.Renew == nil }

// tokenErrors say that a token will do as little the next time.
var tokenErrors = []error{
	token.ErrExpired, token.ErrUsed, token.ErrWrongKey, token.ErrWrongServer, token.ErrStale,
}
