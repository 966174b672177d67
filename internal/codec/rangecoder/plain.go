//go:build !steered

package rangecoder

// Decoder decodes one payload. Any input decodes to something: bytes after the end read as zero.
// Call Reset before use.
type Decoder = decoder

// Length announces the decisions of a length, whose unary code begins at middle. It has an effect
// only in builds with the tag steered.
func (*decoder) Length(middle int) {}
