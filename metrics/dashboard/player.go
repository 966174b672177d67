package dashboard

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/uplink-rpc/uplink/ds"
)

const (
	// maxTracked is how many players are looked at: ten minutes of so many take 25 MB.
	maxTracked = 2000
	// maxListed is how many of them the page gets, the worst.
	maxListed = 1000
	// recent is how many seconds a player's figures in the list are of.
	recent  = 10
	maxName = 64 // characters
)

// second is what happened with a player between two samples.
type second struct {
	calls, missed, drops uint16 // drops: but for what came late or twice, as networks have it
	lost, bursts, came   uint16 // datagrams; runs of those that were lost
	trip                 uint16 // tenths of a millisecond
	bytes                uint32 // that came, of UDP payloads
}

// counts are a player's since it joined.
type counts struct{ calls, missed, drops, lost, bursts, came, bytes uint64 }

func count(p *ds.Player) (c counts, trip time.Duration) {
	st := p.Stats()
	c = counts{
		calls: st.Frames, missed: st.Missed, drops: since(st.Transport.Dropped.Total(), st.Transport.Dropped.Late+st.Transport.Dropped.Duplicate),
		lost: st.Transport.Lost, bursts: st.Transport.LossBursts,
		came: st.Transport.DatagramsReceived, bytes: st.Transport.BytesReceived,
	}
	for d, n := range st.Drops {
		if d := ds.Drop(d); d != ds.Late && d != ds.Duplicate {
			c.drops += n
		}
	}
	return c, st.Transport.RTT
}

func (c *counts) since(o *counts) second {
	return second{
		calls: small(c.calls, o.calls), missed: small(c.missed, o.missed), drops: small(c.drops, o.drops),
		lost: small(c.lost, o.lost), bursts: small(c.bursts, o.bursts), came: small(c.came, o.came),
		bytes: uint32(min(since(c.bytes, o.bytes), math.MaxUint32)),
	}
}

func small(now, before uint64) uint16 { return uint16(min(since(now, before), math.MaxUint16)) }

// tracked is one player who is looked at.
type tracked struct {
	id, client uint64
	name       string
	from       time.Time // when looking began
	last       counts
	round      uint64 // the last in which it was there
	seconds    []second
	next       int // where in seconds the next one comes, once it holds span
}

func (t *tracked) add(s second) {
	if len(t.seconds) < span {
		t.seconds = append(t.seconds, s)
		return
	}
	t.seconds[t.next] = s
	t.next = (t.next + 1) % span
}

// ago gives the second that was i before the newest one.
func (t *tracked) ago(i int) *second {
	return &t.seconds[(t.next+len(t.seconds)-1-i)%len(t.seconds)]
}

// sum adds up the last seconds, and gives their number.
func (t *tracked) sum() (c counts, trip uint16, n int) {
	n = min(recent, len(t.seconds))
	for i := range n {
		s := t.ago(i)
		c.calls += uint64(s.calls)
		c.missed += uint64(s.missed)
		c.drops += uint64(s.drops)
		c.lost += uint64(s.lost)
		c.bursts += uint64(s.bursts)
		c.came += uint64(s.came)
		c.bytes += uint64(s.bytes)
	}
	if n > 0 {
		trip = t.ago(0).trip
	}
	return c, trip, n
}

// tracker looks at the players. The zero value has looked at none.
type tracker struct {
	name     func(*ds.Player) string
	players  map[*ds.Player]*tracked
	round    uint64
	unlooked int // beyond maxTracked
	trips    []uint16
}

func (t *tracker) reset() { *t = tracker{name: t.name} }

// step looks at each player.
func (t *tracker) step(players iter.Seq[*ds.Player], now time.Time) {
	if t.players == nil {
		t.players = map[*ds.Player]*tracked{}
	}
	t.round++
	t.unlooked = 0
	for p := range players {
		c, trip := count(p)
		k := t.players[p]
		switch {
		case k == nil && len(t.players) >= maxTracked:
			t.unlooked++
			continue
		case k == nil:
			k = &tracked{id: p.ID(), client: p.ClientID(), name: t.call(p), from: now}
			t.players[p] = k
		default:
			s := c.since(&k.last)
			s.trip = uint16(min(trip/(100*time.Microsecond), math.MaxUint16))
			k.add(s)
		}
		k.last, k.round = c, t.round
	}
	for p, k := range t.players {
		if k.round != t.round {
			delete(t.players, p)
		}
	}
}

// call gives the name of a player as the page shows it.
func (t *tracker) call(p *ds.Player) string {
	if t.name == nil {
		return ""
	}
	return shown(t.name(p))
}

// shown is a name in one line, without characters that turn others around.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	n := 0
	for i := range name {
		if n++; n > maxName {
			return name[:i] + "…"
		}
	}
	return name
}

// link is how the players' links were in the last second.
type link struct {
	Lost   uint64 `json:"lost"` // datagrams
	Bursts uint64 `json:"bursts"`
	Came   uint64 `json:"came"`
	Median uint16 `json:"rtt50"` // of the players' round trips, tenths of a millisecond
	High   uint16 `json:"rtt95"`
}

func (t *tracker) link() *link {
	l := &link{}
	t.trips = t.trips[:0]
	for _, k := range t.players {
		if len(k.seconds) == 0 {
			continue
		}
		s := k.ago(0)
		l.Lost += uint64(s.lost)
		l.Bursts += uint64(s.bursts)
		l.Came += uint64(s.came)
		if s.trip != 0 {
			t.trips = append(t.trips, s.trip)
		}
	}
	if n := len(t.trips); n > 0 {
		slices.Sort(t.trips)
		l.Median, l.High = t.trips[n/2], t.trips[min(n-1, n*95/100)]
	}
	return l
}

// badness orders players: by the shares of calls that were not delivered and of what was
// dropped, then by that of datagrams that were lost, then by the round trip.
func badness(c *counts, trip uint16) float64 {
	not := float64(c.missed) / float64(max(1, c.calls+c.missed))
	return not*1e4 + float64(c.drops)/float64(max(1, c.came))*1e4 + float64(c.lost)/float64(max(1, c.came+c.lost))*100 + float64(trip)/1e5
}

// line is a player of the list.
type line struct {
	*tracked
	sum     counts
	trip    uint16
	n       int
	badness float64
}

// appendJSON appends the list, the worst first: an array of arrays of the session's and the
// client's numbers, the name, the seconds that follow are of, then calls, missed, drops, datagrams
// lost, bursts, datagrams that came, their bytes, and the round trip in tenths of a millisecond.
func (t *tracker) appendJSON(b []byte) []byte {
	lines := make([]line, 0, len(t.players))
	for _, k := range t.players {
		sum, trip, n := k.sum()
		lines = append(lines, line{k, sum, trip, n, badness(&sum, trip)})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(b.badness, a.badness), cmp.Compare(a.id, b.id))
	})
	b = append(b, '[')
	for i := range lines[:min(len(lines), maxListed)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = lines[i].appendJSON(b)
	}
	return append(b, ']')
}

func (l *line) appendJSON(b []byte) []byte {
	b = append(b, `["`...)
	b = strconv.AppendUint(b, l.id, 10) // as text: JavaScript has 53 bits
	b = append(b, `","`...)
	b = strconv.AppendUint(b, l.client, 10)
	b = append(b, `",`...)
	b = append(b, marshal(l.name)...)
	for _, n := range [...]uint64{
		uint64(l.n), l.sum.calls, l.sum.missed, l.sum.drops, l.sum.lost, l.sum.bursts, l.sum.came, l.sum.bytes, uint64(l.trip),
	} {
		b = append(b, ',')
		b = strconv.AppendUint(b, n, 10)
	}
	return append(b, ']')
}

// listed is how many players are in the list, and how many are not.
func (t *tracker) listed() (in, out int) {
	in = min(len(t.players), maxListed)
	return in, len(t.players) - in + t.unlooked
}

// timeline is all that is known of one player, a value for each second, the oldest first.
type timeline struct {
	ID     string   `json:"id"`
	Calls  []uint16 `json:"calls"`
	Missed []uint16 `json:"missed"`
	Drops  []uint16 `json:"drops"`
	Lost   []uint16 `json:"lost"`
	Came   []uint16 `json:"came"`
	Trip   []uint16 `json:"rtt"` // tenths of a millisecond
	Bytes  []uint32 `json:"bytes"`
}

// timeline gives that of the player with this number, nil if there is none.
func (t *tracker) timeline(id uint64) *timeline {
	for _, k := range t.players {
		if k.id == id {
			return k.timeline()
		}
	}
	return nil
}

func (t *tracked) timeline() *timeline {
	out := &timeline{ID: strconv.FormatUint(t.id, 10)}
	for i := len(t.seconds) - 1; i >= 0; i-- {
		s := t.ago(i)
		out.Calls = append(out.Calls, s.calls)
		out.Missed = append(out.Missed, s.missed)
		out.Drops = append(out.Drops, s.drops)
		out.Lost = append(out.Lost, s.lost)
		out.Came = append(out.Came, s.came)
		out.Trip = append(out.Trip, s.trip)
		out.Bytes = append(out.Bytes, s.bytes)
	}
	return out
}
