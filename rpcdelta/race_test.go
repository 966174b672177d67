//go:build race

package rpcdelta

const raceEnabled = true
