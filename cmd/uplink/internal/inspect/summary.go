package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/capture/record"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// Summary is what a file holds, as far as it could be read.
type Summary struct {
	Start   time.Time `json:"start"`
	Index   int       `json:"index"` // of the file in its row
	Seconds float64   `json:"seconds"`
	Records int       `json:"records"`
	Bytes   int64     `json:"bytes"`
	// Whole says that the file was read to its end mark, Continues that another one follows.
	Whole     bool `json:"whole"`
	Continues bool `json:"continues"`
	// Lost is how many records the server could not write in time.
	Lost      uint64            `json:"lost"`
	Sessions  []*Session        `json:"sessions"`
	RPCs      []*RPC            `json:"rpcs"`
	Drops     map[string]uint64 `json:"drops"`     // of no RPC
	Transport map[string]uint64 `json:"transport"` // datagrams of no session, or of no use to it
	Check     Check             `json:"check"`
	Problems  []string          `json:"problems,omitempty"`

	byPlayer map[uint64]*Session
}

// Session is one of the players.
type Session struct {
	Player           uint64  `json:"player"`
	Client           uint64  `json:"client,string"` // JSON has no integers of 64 bits
	ID               uint64  `json:"session,string"`
	Addr             string  `json:"addr"`
	Suite            string  `json:"suite"`
	Before           bool    `json:"began_before"`
	Closed           bool    `json:"closed"`
	Cause            string  `json:"cause,omitempty"`
	From             float64 `json:"from"`
	To               float64 `json:"to"`
	Received         uint64  `json:"received"`
	ReceivedBytes    uint64  `json:"received_bytes"`
	Sent             uint64  `json:"sent"`
	SentBytes        uint64  `json:"sent_bytes"`
	ReceivedMessages uint64  `json:"received_messages"`
	SentMessages     uint64  `json:"sent_messages"`
	Frames           uint64  `json:"frames"`
	Drops            uint64  `json:"drops"`
}

// RPC is one RPC over one channel with one codec, of all players.
type RPC struct {
	Name     string `json:"name"`
	Reliable bool   `json:"reliable"`
	Codec    string `json:"codec"`
	Payloads uint64 `json:"payloads"`
	Bytes    uint64 `json:"bytes"`
	// Stats counts the frames that were decoded again, Undecoded are the others.
	Stats     Stats             `json:"stats"`
	Undecoded uint64            `json:"undecoded"`
	Late      uint64            `json:"late"`
	Drops     map[string]uint64 `json:"drops"`
	Withheld  map[string]uint64 `json:"withheld"`
}

// Check counts payloads by what decoding them again came to.
type Check struct {
	Same   uint64 `json:"same"`
	Differ uint64 `json:"differ"`
	// Before are those whose baselines are in an earlier file, AfterLoss those that cannot be decoded since records
	// were lost, Broken those without a decoder.
	Before    uint64 `json:"before"`
	AfterLoss uint64 `json:"after_loss"`
	Broken    uint64 `json:"broken"`
	// First is the first difference, FirstRecord where it was noticed.
	First       string `json:"first,omitempty"`
	FirstRecord int    `json:"first_record,omitempty"`
}

func newSummary(s record.Start) *Summary {
	return &Summary{
		Start: s.Wall.UTC(), Index: s.Index, Drops: map[string]uint64{}, Transport: map[string]uint64{}, byPlayer: map[uint64]*Session{},
	}
}

// maxProblems is how many are told.
const maxProblems = 20

func (s *Summary) problem(format string, args ...any) {
	if len(s.Problems) < maxProblems {
		s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
	}
}

func (s *Summary) session(player uint64) *Session {
	p := s.byPlayer[player]
	if p == nil {
		p = &Session{Player: player}
		s.byPlayer[player] = p
	}
	return p
}

// rpcKey tells RPCs apart.
type rpcKey struct {
	name     string
	reliable bool
	codec    rpcdelta.Codec
}

func (x *inspection) rpc(s *stream) *RPC {
	key := rpcKey{s.name, s.cfg.Reliable, s.cfg.Codec}
	r := x.rpcs[key]
	if r == nil {
		x.limits.keep(rpcSize + len(s.name))
		r = &RPC{Name: s.name, Reliable: s.cfg.Reliable, Codec: s.cfg.Codec.String(), Drops: map[string]uint64{}, Withheld: map[string]uint64{}}
		x.rpcs[key] = r
	}
	return r
}

// finish sorts what was counted.
func (s *Summary) finish(x *inspection) {
	for _, p := range s.byPlayer {
		if !p.Closed {
			p.To = s.Seconds
		}
		if x.options.Player == 0 || x.options.Player == p.Player {
			s.Sessions = append(s.Sessions, p)
		}
	}
	slices.SortFunc(s.Sessions, func(a, b *Session) int { return cmp.Compare(a.Player, b.Player) })
	for _, r := range x.rpcs {
		s.RPCs = append(s.RPCs, r)
	}
	slices.SortFunc(s.RPCs, func(a, b *RPC) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Codec, b.Codec), compareBool(a.Reliable, b.Reliable))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
