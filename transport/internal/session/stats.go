package session

// Verdict says what became of a datagram.
type Verdict uint8

// The verdicts. Those after Payload are reasons to drop.
const (
	Accepted        Verdict = iota // taken, nothing to deliver
	Payload                        // taken, with an unreliable payload
	Malformed                      // not a datagram of this protocol
	WrongSession                   // of another session or address
	Unauthenticated                // did not open: forged, altered, or of another session
	Duplicate                      // came before
	Late                           // a payload after 64 newer datagrams, or anything after 1,024
	Unexpected                     // of a kind that makes no sense here and now
	Verdicts                       // how many there are
)

// Stats is what a session counts.
type Stats struct {
	DatagramsSent, BytesSent         uint64
	DatagramsReceived, BytesReceived uint64           // also those that were dropped
	Lost                             uint64           // of the peer's: did not come before 64 newer ones
	LossBursts                       uint64           // runs that these are
	ProbesSent, ProbeBytes           uint64           // of those sent: to find the largest datagram
	PathMigrations                   uint64           // times that the peer's address has changed
	Verdicts                         [Verdicts]uint64 // by verdict
}
