// Package schema describes the values that the codecs of this project send: their fields, how each
// field is quantized, and the frames of integers that result. The importable package of the same
// name has the part for games, and describes the options of tags.
//
// Quantization is deterministic: the same value yields the same integers on every platform. The
// package contains no codec; [Schema.Layouts] describes the meaning and the range of each integer
// to codecs.
package schema
