package dashboard

import (
	"strconv"

	"github.com/uplink-rpc/uplink/ds"
)

// happening is one event of a session.
type happening struct {
	At     int64  `json:"t"` // milliseconds since 1970
	Kind   string `json:"kind"`
	Cause  string `json:"cause,omitempty"`
	Player string `json:"player,omitempty"` // as text: JavaScript has 53 bits
	Client string `json:"client,omitempty"`
	Name   string `json:"name,omitempty"` // name of the player, while it is connected
	Text   string `json:"text,omitempty"`
	Count  uint64 `json:"count"`
}

// happenings contains the newest events, and the number of events that are kept.
type happenings struct {
	Kept int         `json:"kept"`
	Rows []happening `json:"rows"`
}

const maxText = 160 // characters of an event's text

// newEvents returns the first rows of all. names contains the names of connected players by id.
func newEvents(all []ds.Event, rows int, names map[uint64]string) happenings {
	out := happenings{Kept: len(all), Rows: []happening{}}
	for i := range all[:min(len(all), rows)] {
		e := &all[i]
		out.Rows = append(out.Rows, happening{
			At: e.At.UnixMilli(), Kind: e.Kind, Cause: e.Cause, Player: id(e.Player), Client: id(e.Client), Name: names[e.Player],
			Text: sanitized(e.Text, maxText), Count: e.Count,
		})
	}
	return out
}

// id returns an id as text, and 0 as nothing.
func id(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}
