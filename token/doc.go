// Package token makes and opens connect tokens: what a game's backend hands to a
// logged-in player, and what a dedicated server (DS) asks for before it lets a
// client in.
//
// A DS has a [Key]. Its public half is how clients know the server; a token key
// beside it, shared with the backend as an [IssuerKey], is how the server knows
// the backend. The backend issues a [Token] for a player whom it has
// authenticated in its own way:
//
//	key, err := token.ParseIssuerKey(os.Getenv("DS_ISSUER_KEY"))
//	t, err := token.Issue(key, token.Claims{
//		ClientID: 42,
//		Expires:  time.Now().Add(time.Minute),
//		Servers:  []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")},
//	})
//
// and sends its text, t.String(), to the client over HTTPS. The client cannot read
// or change what is sealed in it; it dials with it, once. The server opens it with
// [Key.Open]. That it has expired, names another server or was used before is for
// the transport to find: this package has no clock but for the time of issue.
//
// Make keys with "uplink keygen -o ds.key". The file ds.key stays on the servers,
// ds.key.issuer goes to the backend: whoever has either can let anybody in, and
// whoever has ds.key can pretend to be the server.
//
// Keys do not print themselves: fmt, log/slog and encoders such as encoding/json
// show a name. [Key.Secret] and [IssuerKey.Secret] give the text that
// [ParseKey] and [ParseIssuerKey] read. The text of a Token is a secret too, until
// it is used or expires.
//
// All types are immutable values, for any number of goroutines.
package token
