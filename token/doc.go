// Package token issues and decrypts connect tokens. A game's backend issues one to a logged-in
// player, and a dedicated server (DS) requires it from a client.
//
// A DS has a [Key]. Its public half authenticates the server to clients. The Key also contains a
// token key, which the backend has too, as part of its [IssuerKey]. The token key authenticates the
// backend to the server. The backend issues a [Token] for a player whom it has authenticated in its
// own way:
//
//	key, err := token.ParseIssuerKey(os.Getenv("DS_ISSUER_KEY"))
//	t, err := token.Issue(key, token.Claims{
//		ClientID: 42,
//		Expires:  time.Now().Add(time.Minute),
//		Servers:  []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")},
//	})
//
// and sends its text, t.String(), to the client over HTTPS. The client cannot read or modify the
// encrypted claims. It dials with the token, once. The server decrypts it with [Key.Open]. Package
// transport checks its expiry, server addresses and earlier use; this package reads the clock only
// for the time of issue.
//
// Make keys with "uplink keygen -o ds.key". The file ds.key stays on the servers, ds.key.issuer
// goes to the backend. Whoever has either file can issue tokens for any player. Whoever has ds.key
// can also impersonate the server.
//
// To replace a key, give servers the new and the old one, then issue tokens with the new one, and
// remove the old one when its last token has expired. A [KeyID] in each token names the key that
// issued it.
//
// Printing a key does not reveal it: fmt, log/slog and encoders such as encoding/json print only a
// name. [Key.Secret] and [IssuerKey.Secret] return the text that [ParseKey] and [ParseIssuerKey]
// parse. The text of a Token is a secret too, until it is used or expires.
//
// All types are immutable values and safe for concurrent use.
package token
