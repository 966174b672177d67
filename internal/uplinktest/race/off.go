//go:build !race

// Package race reports whether the race detector is enabled.
package race

// Enabled reports whether the race detector is enabled, which allocates.
const Enabled = false
