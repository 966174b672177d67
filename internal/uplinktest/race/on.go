//go:build race

// Package race tells tests whether the race detector runs.
package race

// Enabled says whether the race detector runs, which allocates.
const Enabled = true
