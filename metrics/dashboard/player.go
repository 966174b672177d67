package dashboard

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/uplink-rpc/uplink/ds"
)

const (
	// maxTracked is the maximum number of players with a timeline. Ten minutes of them take 25 MB.
	maxTracked = 2000
	// maxListed is the maximum number of players in the list: the worst connections.
	maxListed = 1000
	// recent is the number of seconds over which the list averages.
	recent  = 10
	maxName = 64 // characters
)

// second contains the counts of one player between two samples.
type second struct {
	calls, missed, drops   uint16 // drops without the reasons late and duplicate
	lost, bursts, received uint16 // datagrams, and loss bursts
	rtt                    uint16 // tenths of a millisecond
	bytes                  uint32 // received, of UDP payloads
}

// counts are the counts of one player since it joined.
type counts struct{ calls, missed, drops, lost, bursts, received, bytes uint64 }

func count(p *ds.Player) (c counts, rtt time.Duration) {
	st := p.Stats()
	c = counts{
		calls: st.Frames, missed: st.Missed, drops: since(st.Transport.Dropped.Total(), st.Transport.Dropped.Late+st.Transport.Dropped.Duplicate),
		lost: st.Transport.Lost, bursts: st.Transport.LossBursts,
		received: st.Transport.DatagramsReceived, bytes: st.Transport.BytesReceived,
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
		lost: small(c.lost, o.lost), bursts: small(c.bursts, o.bursts), received: small(c.received, o.received),
		bytes: uint32(min(since(c.bytes, o.bytes), math.MaxUint32)),
	}
}

func small(now, before uint64) uint16 { return uint16(min(since(now, before), math.MaxUint16)) }

type tracked struct {
	id, client uint64
	name       string
	last       counts
	round      uint64 // the last in which it was connected
	seconds    []second
	next       int // index of the oldest entry, once seconds has span entries
}

func (t *tracked) add(s second) {
	if len(t.seconds) < span {
		t.seconds = append(t.seconds, s)
		return
	}
	t.seconds[t.next] = s
	t.next = (t.next + 1) % span
}

func (t *tracked) ago(i int) *second {
	return &t.seconds[(t.next+len(t.seconds)-1-i)%len(t.seconds)]
}

// sum returns the sums over the last n seconds, and the newest RTT.
func (t *tracked) sum() (c counts, rtt uint16, n int) {
	n = min(recent, len(t.seconds))
	for i := range n {
		s := t.ago(i)
		c.calls += uint64(s.calls)
		c.missed += uint64(s.missed)
		c.drops += uint64(s.drops)
		c.lost += uint64(s.lost)
		c.bursts += uint64(s.bursts)
		c.received += uint64(s.received)
		c.bytes += uint64(s.bytes)
	}
	if n > 0 {
		rtt = t.ago(0).rtt
	}
	return c, rtt, n
}

// tracker keeps the timelines of players. The zero value has none.
type tracker struct {
	name      func(*ds.Player) string
	players   map[*ds.Player]*tracked
	round     uint64
	untracked int // players beyond maxTracked
	rtts      []uint16
}

func (t *tracker) reset() { *t = tracker{name: t.name} }

func (t *tracker) step(players iter.Seq[*ds.Player]) {
	if t.players == nil {
		t.players = map[*ds.Player]*tracked{}
	}
	t.round++
	t.untracked = 0
	for p := range players {
		c, rtt := count(p)
		k := t.players[p]
		switch {
		case k == nil && len(t.players) >= maxTracked:
			t.untracked++
			continue
		case k == nil:
			k = &tracked{id: p.ID(), client: p.ClientID()}
			if t.name != nil {
				k.name = sanitized(t.name(p))
			}
			t.players[p] = k
		default:
			s := c.since(&k.last)
			s.rtt = uint16(min(rtt/(100*time.Microsecond), math.MaxUint16))
			k.add(s)
		}
		k.last, k.round = c, t.round
	}
	maps.DeleteFunc(t.players, func(_ *ds.Player, k *tracked) bool { return k.round != t.round })
}

// sanitized returns a name with at most maxName characters, all of them printable.
func sanitized(name string) string {
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

// link contains the datagrams and RTTs of all players in the last second.
type link struct {
	Lost     uint64 `json:"lost"`
	Bursts   uint64 `json:"bursts"` // loss bursts
	Received uint64 `json:"received"`
	Median   uint16 `json:"rtt50"` // of the players' RTTs, in tenths of a millisecond
	High     uint16 `json:"rtt95"`
}

func (t *tracker) link() *link {
	l := &link{}
	t.rtts = t.rtts[:0]
	for _, k := range t.players {
		if len(k.seconds) == 0 {
			continue
		}
		s := k.ago(0)
		l.Lost += uint64(s.lost)
		l.Bursts += uint64(s.bursts)
		l.Received += uint64(s.received)
		if s.rtt != 0 {
			t.rtts = append(t.rtts, s.rtt)
		}
	}
	if n := len(t.rtts); n > 0 {
		slices.Sort(t.rtts)
		l.Median, l.High = t.rtts[n/2], t.rtts[min(n-1, n*95/100)]
	}
	return l
}

// badness returns the sort key of the list: mostly the shares of missed frames and of drops, then
// packet loss, then the RTT.
func badness(c *counts, rtt uint16) float64 {
	not := float64(c.missed) / float64(max(1, c.calls+c.missed))
	return not*1e4 + float64(c.drops)/float64(max(1, c.received))*1e4 + float64(c.lost)/float64(max(1, c.received+c.lost))*100 + float64(rtt)/1e5
}

type line struct {
	*tracked
	sum     counts
	rtt     uint16
	n       int
	badness float64
}

// appendJSON appends the list, the worst first. Each entry is an array: session id, client id,
// name, number of seconds, calls, missed frames, drops, lost datagrams, loss bursts, received
// datagrams, their bytes, and the RTT in tenths of a millisecond.
func (t *tracker) appendJSON(b []byte) []byte {
	lines := make([]line, 0, len(t.players))
	for _, k := range t.players {
		sum, rtt, n := k.sum()
		lines = append(lines, line{k, sum, rtt, n, badness(&sum, rtt)})
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
		uint64(l.n), l.sum.calls, l.sum.missed, l.sum.drops, l.sum.lost, l.sum.bursts, l.sum.received, l.sum.bytes, uint64(l.rtt),
	} {
		b = append(b, ',')
		b = strconv.AppendUint(b, n, 10)
	}
	return append(b, ']')
}

// unlisted returns the number of connected players that are not in the list.
func (t *tracker) unlisted() int { return max(0, len(t.players)-maxListed) + t.untracked }

// timeline contains the counts of one player for each second, the oldest first.
type timeline struct {
	ID       string   `json:"id"`
	Calls    []uint16 `json:"calls"`
	Missed   []uint16 `json:"missed"`
	Drops    []uint16 `json:"drops"`
	Lost     []uint16 `json:"lost"`
	Received []uint16 `json:"received"`
	RTT      []uint16 `json:"rtt"` // tenths of a millisecond
	Bytes    []uint32 `json:"bytes"`
}

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
		out.Received = append(out.Received, s.received)
		out.RTT = append(out.RTT, s.rtt)
		out.Bytes = append(out.Bytes, s.bytes)
	}
	return out
}
