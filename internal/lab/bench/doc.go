// Package bench runs recorded play through an Encoder, a simulated link and a Decoder in virtual time, and counts the
// bits on their way. What it counts is a function of trace and Config; only the times of encoding and decoding are
// measured, afterwards and on the real clock.
package bench
