package endpoint

// Payloads counts the payloads of an RPC on one channel, and the datagrams that contain them.
type Payloads struct {
	RPC      string
	Reliable bool
	// Messages and Bytes count the payloads, with their headers.
	Messages, Bytes uint64
	// Coalesced counts the payloads that were not the first in their datagram. CoalescedBytes
	// counts the bytes of their datagrams for coalescing, in addition to the payloads.
	Coalesced, CoalescedBytes uint64
	// AEADBytes is the AEAD overhead of the datagrams. Coalesced payloads add none. Over the
	// reliable channel it is an estimate of one datagram per payload.
	AEADBytes uint64
	// PriorFallbacks counts bindings whose prior the server did not have.
	PriorFallbacks uint64
}

// Datagrams returns the number of datagrams with payloads of the RPC: one that contains payloads of
// several RPCs belongs to the first.
func (p *Payloads) Datagrams() uint64 { return p.Messages - p.Coalesced }

// WireBytes returns the bytes of these datagrams, including AEAD overhead and all headers down to
// IP. For the reliable channel it is an estimate without retransmissions.
func (p *Payloads) WireBytes() uint64 {
	header := uint64(HeaderSize)
	if p.Reliable {
		header = SegmentHeaderSize
	}
	return p.Bytes + p.CoalescedBytes + p.AEADBytes + p.Datagrams()*(header+IPSize)
}

// AddPayloads adds the counts of o.
func (p *Payloads) AddPayloads(o *Payloads) {
	p.Messages += o.Messages
	p.Bytes += o.Bytes
	p.Coalesced += o.Coalesced
	p.CoalescedBytes += o.CoalescedBytes
	p.AEADBytes += o.AEADBytes
	p.PriorFallbacks += o.PriorFallbacks
}

// Acks counts acks of RPCs, and the reports on jitter buffers that are sent with them.
type Acks struct {
	// Messages is the number of datagrams with nothing but acks, AEADBytes their AEAD overhead.
	// Piggybacked is the number of datagrams that contained acks and a message of a world, as the
	// sending end counts them.
	Messages, AEADBytes, Piggybacked uint64
	// Bytes is the size of all acks, with the type and length of their message, without headers.
	Bytes uint64
}

// WireBytes returns the size of the datagrams with nothing but acks, including AEAD overhead and
// all headers down to IP, plus the size of the piggybacked acks, without headers.
func (a Acks) WireBytes() uint64 {
	return a.Bytes + a.AEADBytes + a.Messages*(HeaderSize+IPSize)
}

// Add adds the counts of o.
func (a *Acks) Add(o *Acks) {
	a.Messages += o.Messages
	a.AEADBytes += o.AEADBytes
	a.Piggybacked += o.Piggybacked
	a.Bytes += o.Bytes
}
