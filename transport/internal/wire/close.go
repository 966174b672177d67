package wire

// MaxCloseText is the size of the longest text of a close in bytes.
const MaxCloseText = 64

// CloseCode says who ended a session.
type CloseCode uint8

// The codes of a close.
const (
	CloseNormal   CloseCode = iota // the application closed the connection
	CloseShutdown                  // the listener is going away
	CloseReplaced                  // the same client has a new session
)

// Close ends a session.
type Close struct {
	Code CloseCode
	Text []byte // for people; at most MaxCloseText bytes, of any kind
}

// AppendClose appends the body of a close. What the text has beyond [MaxCloseText] bytes is cut off.
func AppendClose(b []byte, c Close) []byte {
	b = append(b, uint8(c.Code))
	return append(b, c.Text[:min(len(c.Text), MaxCloseText)]...)
}

// ParseClose reads the body of a close. The text shares body's memory. An empty body, or a longer text
// than [MaxCloseText], is [ErrMalformed].
func ParseClose(body []byte) (Close, error) {
	if len(body) < 1 || len(body) > 1+MaxCloseText {
		return Close{}, ErrMalformed
	}
	return Close{Code: CloseCode(body[0]), Text: body[1:]}, nil
}
