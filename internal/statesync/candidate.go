package statesync

import "github.com/uplink-rpc/uplink/internal/codec/rangecoder"

// savepoint is the state of the sender before an object. The sender restores it if the object does
// not fit.
type savepoint struct {
	set     bool
	enc     rangecoder.Encoder
	state   *modelState
	updates int
	size    int
	ctx     int
	next    int
}

// packetBuilder fills packets. It picks candidates in order of priority while their expected sizes
// fit, and codes the picked ones in ascending order of ids. If more or less space is left than
// expected, it adds candidates or drops the last picked ones.
type packetBuilder struct {
	list  []candidate
	at    []int32 // by index of the baseline: index of its candidate + 1, or 0
	out   packet
	buf   []byte
	saved savepoint

	attempt     int
	limit       int   // maximum size of the coded part, in bits
	size        int   // size of the coded part after the last update, in 1/256 bit
	first       int   // index of the first candidate, for which space is reserved, or -1
	tail        int   // index of the first candidate that pick has not considered
	count       int   // number of candidates that are picked or sent
	pending     int   // sum of the expected sizes of the picked candidates, in 1/256 bit
	needed      int   // sum of the sizes of the sent candidates, in 1/256 bit
	viewerCoded bool  // the update of the viewer object has been coded
	ctx         int   // context of modelState.more, 0 to 3
	next        int   // index of the next baseline to code
	last        int64 // id of the last coded object without a baseline, or -1
}

// Attempts to fill a packet, in order.
const (
	optimistic     = iota // set savepoints only near the end of the packet
	withSavepoints        // set a savepoint before each object
	firstAlone            // send the first candidate only
	attempts
)

const (
	// resendInterval is the number of packets after which a removal is sent again.
	resendInterval = 4
	// removalBits is the approximate size of a removal.
	removalBits = 12
)

// Sizes of updates are in 1/256 bit; stored ones are in units of 1/16 bit.
const (
	bit      = 256
	needUnit = 16
)

type candidateState uint8

const (
	waiting candidateState = iota
	picked                 // objects to code
	sent
	failed   // did not fit into the packet
	excluded // does not fit into a packet of its own
)

type candidate struct {
	at    int32 // index in the world's set, or -1: removed
	base  int32 // index among the baselines, or -1
	need  int32 // size of the update in 1/256 bit, expected or actual
	id    uint16
	with  uint8 // 1 if there is a baseline
	state candidateState
}

// overpick limits the expected sizes of the picked updates: they may exceed the space by
// 1/overpick.
const overpick = 16

// maxMisfits is the number of consecutive unsuitable candidates after which the builder adds no
// more. It is also the number of candidates that are tried in a packet of their own.
const maxMisfits = 12
