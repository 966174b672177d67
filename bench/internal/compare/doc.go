// Package compare runs this project's codecs and their peers over the same frames and the same link, and counts bits and
// time. Half of a trace trains the peers that learn from samples; the other half is measured, for all.
package compare
