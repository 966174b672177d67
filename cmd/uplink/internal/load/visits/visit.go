package visits

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// move contains the arguments of both RPCs. All other fields are functions of Number and of the
// client's id.
type move struct {
	Number  int32
	X       float32 `uplink:"resolution=0.25"`
	Yaw     uint16  `uplink:"kind=bits"`
	Buttons uint8   `uplink:"kind=bits"`
}

// moveAt returns call n of a client.
func moveAt(client uint64, n int32) move {
	return move{n, float32(n%4096)/4 + float32(client%256), uint16(uint64(n)*37 + client), uint8(n / 20)}
}

// Span is the half-open range [From, To) of numbers.
type Span struct {
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
}

// extend adds the number that arrived next.
func extend(s []Span, n uint32) []Span {
	if last := len(s) - 1; last >= 0 && s[last].To == n {
		s[last].To++
		return s
	}
	return append(s, Span{n, n + 1})
}

// count compares the received numbers with 0 to sent-1, each of which should have arrived once.
func count(got []Span, sent uint32) (lost, doubled uint64) {
	got = slices.Clone(got)
	slices.SortFunc(got, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	next := uint32(0)
	for _, s := range got {
		if s.From > next {
			lost += uint64(s.From - next)
		}
		if s.From < next {
			doubled += uint64(min(next, s.To) - s.From)
		}
		next = max(next, s.To)
	}
	if sent > next {
		lost += uint64(sent - next)
	}
	return lost, doubled
}

// Visit is the record of a player's session at a server.
type Visit struct {
	Client  uint64    `json:"client"`
	ID      uint64    `json:"id"`      // random id of the visit
	Called  time.Time `json:"called"`  // arrival of the first call
	First   int32     `json:"first"`   // number of the first call
	Last    int32     `json:"last"`    // number of the last call
	Calls   uint64    `json:"calls"`   // number of calls that arrived
	Wrong   uint64    `json:"wrong"`   // number of calls with wrong arguments
	Payload bool      `json:"payload"` // the data of the handover is as expected; true without a handover
	// Reliable calls and messages, in the order of their arrival.
	Reliable []Span `json:"reliable"`
	Messages []Span `json:"messages"`
	Sent     uint32 `json:"sent"` // reliable messages to the client
}

// A message to a client contains the number of the visit and its own number. A message to the
// server contains only its own number.
const messageSize = 12

func appendMessage(b []byte, visit uint64, n uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, visit), n)
}

var errMessage = errors.New("visits: a message of another size")

func parseMessage(b []byte) (visit uint64, n uint32, err error) {
	if len(b) != messageSize {
		return 0, 0, errMessage
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), nil
}
