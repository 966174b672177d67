package statesync

// SenderStats counts what a sender did.
type SenderStats struct {
	// Packets, and the bytes and updates in them; of the updates those Whole, without a baseline, and those that say
	// that an object is Gone.
	Packets, Bytes, Updates, Whole, Gone uint64
	// Acks that were taken, StaleAcks of before a new start, ImpossibleAcks of packets that were never sent.
	Acks, StaleAcks, ImpossibleAcks uint64
	// Starts is how often models and baselines began anew, since acks failed to come or the receiver asked for it.
	Starts uint64
}

// ReceiverStats counts packets.
type ReceiverStats struct {
	// Packets that were decoded, and of these the ones that came after a newer one.
	Packets, Reordered uint64
	// Packets that were refused, by reason.
	Late, Duplicate, BaselineMissing, Desync, Malformed uint64
	// Lost is how many never came so far.
	Lost uint64
}
