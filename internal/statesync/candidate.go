package statesync

import "github.com/uplink-rpc/uplink/internal/codec/rangecoder"

// savepoint is the state before an object, to which the sender returns if the object does not fit.
type savepoint struct {
	set     bool
	enc     rangecoder.Encoder
	state   *modelState
	updates int
	size    int
	ctx     int
	next    int
}

// packetBuilder fills packets. It picks the first candidates that should fit by the sizes of their
// previous updates and codes them by id. If more or less space is left than expected, it drops the
// last ones or adds others.
type packetBuilder struct {
	list  []candidate
	at    []int32 // by baseline: index of the candidate + 1, or 0
	out   packet
	buf   []byte
	saved savepoint

	attempt     int
	limit       int   // of the coded part, in bits
	size        int   // of the coded part after the last update
	first       int   // the first candidate, which is reserved space, or -1
	tail        int   // candidates from here on are not picked
	count       int   // candidates picked or sent
	pending     int   // sum of the sizes of those picked
	needed      int   // sum of the sizes of those sent
	viewerCoded bool  // the update of the viewer object has been coded
	ctx         int   // context of modelState.more
	next        int   // the next baseline to code
	last        int64 // id of the last object without a baseline
}

// Attempts to fill a packet, in order.
const (
	optimistic     = iota // with savepoints near the end of the packet
	withSavepoints        // before each object
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
	picked                 // to be coded
	sent
	failed   // did not fit
	excluded // does not fit even alone
)

type candidate struct {
	at    int32 // index in the world's set, or -1: removed
	base  int32 // index among the baselines, or -1
	need  int32 // size of the update, estimated or actual
	id    uint16
	with  uint8 // 1 if there is a baseline
	state candidateState
}

// overpick is the fraction of the space by which the estimates of picked updates may exceed it.
const overpick = 16

// maxMisfits is the number of consecutive candidates that do not fit before the builder stops
// adding others, and the number of those tried alone.
const maxMisfits = 12
