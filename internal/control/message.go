package control

import "github.com/uplink-rpc/uplink/internal/ratelimit"

// MaxMessage is the most bytes of a message of the game's own.
const MaxMessage = 8 << 10

const (
	messageRate  = 64 << 10  // bytes a second that a client sends in messages
	messageBurst = 128 << 10 // that it sends at once
	messageSize  = 64        // that a message counts for besides its own
	// heldBack is what the reliable channel holds at most when the network was away.
	heldBack = 512 << 10
)

// What a client keeps to, and beyond what a DS need not take it: whatever the network
// holds back, a client that keeps to its rate is never above the DS's.
var (
	ClientMessages = ratelimit.Rate{PerSecond: messageRate, Burst: messageBurst}
	DSMessages     = ratelimit.Rate{PerSecond: 2 * messageRate, Burst: messageBurst + heldBack}
)

// MessageCost is what a message of so many bytes takes of those rates.
func MessageCost(size int) float64 { return float64(size + messageSize) }

// AppendMessage appends a message with its type.
func AppendMessage(dst, b []byte) []byte { return append(append(dst, byte(Message)), b...) }
