//go:build !unix

package udp

// truncated is 0: a message that does not fit is an error, and lost.
const truncated = 0
