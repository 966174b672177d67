//go:build !race

package rpcdelta

const raceEnabled = false
