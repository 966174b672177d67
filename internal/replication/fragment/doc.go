// Package fragment carries messages that are larger than a datagram: a [Splitter] cuts them into fragments, an
// [Assembler] puts them together again. Fragments may be lost and come in any order. It does not know what it carries.
//
// A fragment is a header of 4 bytes and a part of the message:
//
//	0-1  sequence of the message u16, low byte first: fragmented messages are counted, from 0
//	2    index of the fragment
//	3    number of fragments, less 1
//	4-   the part: of a size that both ends know, but for the last, which has the rest
package fragment

import "errors"

const (
	// HeaderSize is what a fragment has before its part, in bytes.
	HeaderSize = 4
	// MaxCount is the most fragments of a message.
	MaxCount = 64
	// Window is how many messages are put together at the same time: the newest of which a fragment came, and those
	// before it.
	Window = 4
)

// What is wrong with a message or a fragment.
var (
	// ErrTooLarge says that a message takes more than MaxCount fragments.
	ErrTooLarge = errors.New("fragment: message too large")
	// ErrMalformed says that no Splitter makes such a fragment.
	ErrMalformed = errors.New("fragment: malformed")
	// ErrLate says that the fragment's message is older than the Window.
	ErrLate = errors.New("fragment: too late")
	// ErrDuplicate says that the fragment came before.
	ErrDuplicate = errors.New("fragment: came before")
)
