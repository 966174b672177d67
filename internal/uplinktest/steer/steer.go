// Package steer lets fuzz targets make well-formed messages that only a hostile sender encodes.
package steer

import "math/rand/v2"

// Message is rangecoder.Steer in builds with the tag steered, and nil in others.
var Message func(r *rand.Rand, message []byte, decode func([]byte)) []byte
