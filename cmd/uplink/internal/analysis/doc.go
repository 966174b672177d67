// Package analysis says where the bits of recorded play go, what other predictors would have made of it, and what
// becomes of it at other resolutions, rates and links.
package analysis
