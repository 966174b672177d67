package dashboard

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// maxRows is the maximum number of players that a page shows.
const maxRows = 200

// listing selects and orders the players that a page shows.
type listing struct {
	rows      int
	sort      func(*row) figure // sort key, in descending order
	ascending bool
	find      string // part of a name or number
	world     string // world whose downlink is shown; "" for the sums of all worlds
}

// players are the players whom a page shows.
type players struct {
	Rows      []*row   `json:"rows"`
	Found     int      `json:"found"`     // players whom find selects
	Tracked   int      `json:"tracked"`   // players who can be found
	Untracked int      `json:"untracked"` // connected players beyond them
	Worlds    []string `json:"worlds"`
}

// figure is a number in JSON, with three to four digits. NaN stands for an unknown figure and is
// null.
type figure float64

// MarshalJSON implements [json.Marshaler].
func (f figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(f), 'g', 5, 64), nil
}

// row contains the figures of one player: means of the last ten seconds, and the present state of
// its worlds.
type row struct {
	ID     string `json:"id"` // as text: JavaScript has 53 bits
	Client string `json:"client"`
	Name   string `json:"name"`

	Calls  figure `json:"calls"` // per second
	Missed figure `json:"missed"`
	Loss   figure `json:"loss"`
	Burst  figure `json:"burst"` // mean burst length in datagrams
	Drops  figure `json:"drops"` // per second
	Up     figure `json:"up"`    // bits per second, with all headers down to IP
	RTT    figure `json:"rtt"`   // round-trip time in milliseconds

	Down     figure `json:"down"` // bits per second to the player in all, or of the world that is shown
	Objects  figure `json:"objects"`
	Waiting  figure `json:"waiting"`
	Baseline figure `json:"baseline"` // age in milliseconds: the maximum of the worlds
	Ack      figure `json:"ack"`      // maximum ack age of the worlds in milliseconds
	Keyframe figure `json:"keyframe"` // share of the messages
	Sharing  figure `json:"sharing"`  // players who share an encoding: the minimum of the worlds

	label string
	worst float64
}

// columns are the keys by which the players can be sorted. The names of players are sorted by an
// order of their own.
var columns = map[string]func(*row) figure{
	"worst":    func(r *row) figure { return figure(r.worst) },
	"player":   nil,
	"calls":    func(r *row) figure { return r.Calls },
	"missed":   func(r *row) figure { return r.Missed },
	"loss":     func(r *row) figure { return r.Loss },
	"burst":    func(r *row) figure { return r.Burst },
	"drops":    func(r *row) figure { return r.Drops },
	"up":       func(r *row) figure { return r.Up },
	"rtt":      func(r *row) figure { return r.RTT },
	"down":     func(r *row) figure { return r.Down },
	"objects":  func(r *row) figure { return r.Objects },
	"waiting":  func(r *row) figure { return r.Waiting },
	"baseline": func(r *row) figure { return r.Baseline },
	"ack":      func(r *row) figure { return r.Ack },
	"keyframe": func(r *row) figure { return r.Keyframe },
	"sharing":  func(r *row) figure { return r.Sharing },
}

func (l *listing) compare(a, b *row) int {
	order := strings.Compare(a.label, b.label)
	if l.sort != nil {
		x, y := float64(l.sort(a)), float64(l.sort(b))
		if nx, ny := math.IsNaN(x), math.IsNaN(y); nx != ny { // unknown values last
			if nx {
				return 1
			}
			return -1
		}
		order = cmp.Compare(x, y)
	}
	if !l.ascending {
		order = -order
	}
	return cmp.Or(order, cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
}

var unknown = figure(math.NaN())

func share(n, of uint64) figure {
	if of == 0 {
		return unknown
	}
	return figure(float64(n) / float64(of))
}

func plusKnown(f figure, n int) figure {
	if math.IsNaN(float64(f)) {
		return figure(n)
	}
	return f + figure(n)
}

func maxKnown(f, g figure) figure {
	if math.IsNaN(float64(f)) {
		return g
	}
	return max(f, g)
}
