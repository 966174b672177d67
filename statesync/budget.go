package statesync

import "math"

// BytesPerPacket is the budget of each packet, in bytes, where rate packets a second may take kbit kilobits (1,000 bits) a
// second together; overhead bytes of each are taken by what carries it (28 by IP and UDP, and by the transport). It is 0 for a
// rate that is not above 0, and where nothing is left.
func BytesPerPacket(kbit, rate float64, overhead int) int {
	if !(rate > 0) || !(kbit > 0) {
		return 0
	}
	return max(0, int(math.Floor(min(kbit*1000/8/rate, math.MaxInt32)))-overhead)
}
