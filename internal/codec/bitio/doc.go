// Package bitio writes and reads integers of 0 to 64 bits, least significant bit first within each
// byte.
//
// A [Writer] appends to a slice of the caller, a [Reader] reads one and never writes to it. Both
// are reused with Reset and allocate nothing once the caller's slice has room. Neither is safe for
// concurrent use.
package bitio
