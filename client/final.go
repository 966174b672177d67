package client

import (
	"errors"
	"slices"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// final says that an error, of a connection's end or of making it again, leaves
// nothing to be tried.
func (c Config) final(err error) bool {
	is := func(e error) bool { return errors.Is(err, e) }
	return is(transport.ErrClosedByPeer) || is(transport.ErrReplaced) ||
		c.Token != token.Token{} && slices.ContainsFunc(tokenErrors, is)
}

// tokenErrors say that a token will do as little the next time.
var tokenErrors = []error{
	transport.ErrTokenExpired, transport.ErrTokenUsed, transport.ErrTokenRefused,
	transport.ErrTokenServer, transport.ErrTokenStale,
}
