//go:build race

// Package race reports whether the race detector is enabled.
package race

// Enabled reports whether the race detector is enabled. It makes tests allocate.
const Enabled = true
