package dashboard

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/replication"
)

const (
	// maxTracked is the maximum number of players with a timeline. Ten minutes of them take 39 MB.
	maxTracked = 2000
	// recent is the number of seconds over which the list averages.
	recent  = 10
	maxName = 64 // characters
)

// second contains the counts of one player between two samples.
type second struct {
	calls, missed, drops   uint16 // drops without the reasons late and duplicate
	lost, bursts, received uint16 // datagrams, and loss bursts
	rtt                    uint16 // tenths of a millisecond
	waiting                uint16 // objects of all worlds
	baseline, ack          uint16 // ages in milliseconds: the maximum of the worlds
	bytes, sent            uint32 // received and sent, with all headers down to IP
}

// counts are the counts of one player since it joined.
type counts struct{ calls, missed, drops, lost, bursts, received, bytes, sent uint64 }

func count(st *ds.PlayerStats) (c counts) {
	c = counts{
		calls: st.Frames, missed: st.Missed, drops: since(st.Transport.Dropped.Total(), st.Transport.Dropped.Late+st.Transport.Dropped.Duplicate),
		lost: st.Transport.Lost, bursts: st.Transport.LossBursts,
		received: st.Transport.DatagramsReceived, bytes: st.Transport.BytesReceived + endpoint.IPSize*st.Transport.DatagramsReceived,
		sent: st.Transport.BytesSent + endpoint.IPSize*st.Transport.DatagramsSent,
	}
	for d, n := range st.Drops {
		if d := ds.Drop(d); d != ds.Late && d != ds.Duplicate {
			c.drops += n
		}
	}
	return c
}

func (c *counts) since(o *counts) second {
	return second{
		calls: small(c.calls, o.calls), missed: small(c.missed, o.missed), drops: small(c.drops, o.drops),
		lost: small(c.lost, o.lost), bursts: small(c.bursts, o.bursts), received: small(c.received, o.received),
		bytes: uint32(min(since(c.bytes, o.bytes), math.MaxUint32)), sent: uint32(min(since(c.sent, o.sent), math.MaxUint32)),
	}
}

func small(now, before uint64) uint16 { return uint16(min(since(now, before), math.MaxUint16)) }

type tracked struct {
	id, client uint64
	name       string
	worlds     []trackedWorld
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
		c.sent += uint64(s.sent)
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
	cache     map[string][]*row // rows of this step, by the world that is shown
}

func (t *tracker) reset() { *t = tracker{name: t.name} }

func (t *tracker) step(players iter.Seq[*ds.Player]) {
	if t.players == nil {
		t.players = map[*ds.Player]*tracked{}
	}
	t.round++
	t.untracked, t.cache = 0, nil
	for p := range players {
		st := p.Stats()
		c := count(&st)
		k := t.players[p]
		switch {
		case k == nil && len(t.players) >= maxTracked:
			t.untracked++
			continue
		case k == nil:
			k = &tracked{id: p.ID(), client: p.ClientID()}
			if t.name != nil {
				k.name = sanitized(t.name(p), maxName)
			}
			t.players[p] = k
			k.step(st.Replication)
		default:
			k.step(st.Replication)
			s := c.since(&k.last)
			s.rtt = uint16(min(st.Transport.RTT/(100*time.Microsecond), math.MaxUint16))
			for i := range k.worlds {
				w := &k.worlds[i]
				s.waiting = uint16(min(int(s.waiting)+w.waiting, math.MaxUint16))
				s.baseline = max(s.baseline, uint16(min(w.ms(w.baseline), math.MaxUint16)))
				s.ack = max(s.ack, uint16(min(w.ms(w.ack), math.MaxUint16)))
			}
			k.add(s)
		}
		k.last, k.round = c, t.round
	}
	maps.DeleteFunc(t.players, func(_ *ds.Player, k *tracked) bool { return k.round != t.round })
}

// names returns the names of the players that have one, by id.
func (t *tracker) names() map[uint64]string {
	names := map[uint64]string{}
	for _, k := range t.players {
		if k.name != "" {
			names[k.id] = k.name
		}
	}
	return names
}

// sanitized returns a text with at most the given number of characters, all of them printable.
func sanitized(name string, most int) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	n := 0
	for i := range name {
		if n++; n > most {
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
	Median   uint16 `json:"rtt50"` // median of the players' RTTs, in tenths of a millisecond
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
	Sent     []uint32 `json:"sent"` // bytes
	Waiting  []uint16 `json:"waiting"`
	Baseline []uint16 `json:"baseline"` // milliseconds
	Ack      []uint16 `json:"ack"`      // ack ages in milliseconds

	Worlds  []playerWorld `json:"worlds"`
	Buffers []buffers     `json:"buffers"`
}

// timeline returns the timeline of a player, with the jitter buffers of the given RPCs.
func (t *tracker) timeline(id uint64, rpcs []string) *timeline {
	for p, k := range t.players {
		if k.id != id {
			continue
		}
		out := k.timeline()
		for _, rpc := range rpcs {
			if b, ok := p.Buffer(rpc); ok {
				out.Buffers = append(out.Buffers, newBuffers(rpc, &b))
			}
		}
		return out
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
		out.Sent = append(out.Sent, s.sent)
		out.Waiting = append(out.Waiting, s.waiting)
		out.Baseline = append(out.Baseline, s.baseline)
		out.Ack = append(out.Ack, s.ack)
	}
	for i := range t.worlds {
		out.Worlds = append(out.Worlds, newPlayerWorld(&t.worlds[i]))
	}
	return out
}

// list returns the players whom a page shows.
func (t *tracker) list(l listing) *players {
	out := &players{Tracked: len(t.players), Untracked: t.untracked, Worlds: t.worlds()}
	all := t.rows(l.world)
	if find := strings.ToLower(strings.TrimSpace(l.find)); find != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(r *row) bool {
			return !strings.Contains(strings.ToLower(r.label), find) && !strings.Contains(r.ID, find)
		})
	} else {
		all = slices.Clone(all)
	}
	out.Found = len(all)
	slices.SortFunc(all, l.compare)
	out.Rows = all[:min(len(all), l.rows)]
	return out
}

// worlds returns the names of all players' worlds, in order.
func (t *tracker) worlds() []string {
	names := []string{}
	for _, k := range t.players {
		for i := range k.worlds {
			if !slices.Contains(names, k.worlds[i].name) {
				names = append(names, k.worlds[i].name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// rows returns the rows of all players, which are computed once per step for each world that is
// shown.
func (t *tracker) rows(world string) []*row {
	if t.cache == nil {
		t.cache = map[string][]*row{}
	}
	all, ok := t.cache[world]
	if !ok {
		for _, k := range t.players {
			all = append(all, k.row(world))
		}
		if len(t.cache) < maxPages { // a world that does not exist can be asked for
			t.cache[world] = all
		}
	}
	return all
}

func (t *tracked) row(world string) *row {
	c, rtt, n := t.sum()
	per := func(v uint64) figure { return figure(float64(v) / float64(n)) }
	r := &row{
		ID: strconv.FormatUint(t.id, 10), Client: strconv.FormatUint(t.client, 10), Name: t.name,
		Calls: per(c.calls), Missed: share(c.missed, c.calls+c.missed), Loss: share(c.lost, c.received+c.lost), Burst: share(c.lost, c.bursts),
		Drops: per(c.drops), Up: 8 * per(c.bytes), Down: 8 * per(c.sent), RTT: figure(float64(rtt) / 10),
		Objects: unknown, Waiting: unknown, Baseline: unknown, Ack: unknown, Keyframe: unknown, Sharing: unknown,
		worst: badness(&c, rtt),
	}
	if rtt == 0 {
		r.RTT = unknown
	}
	if r.label = t.name; t.name == "" && t.client != 0 {
		r.label = "client " + r.Client
	} else if t.name == "" {
		r.label = "session " + r.ID
	}
	if world != "" {
		r.Down = unknown
	}
	var keyframes, messages uint64
	for i := range t.worlds {
		w := &t.worlds[i]
		if !w.ready || world != "" && w.name != world {
			continue
		}
		s, n := w.sum()
		if world != "" {
			r.Down = figure(float64(s.bits) / float64(n))
		}
		r.Objects, r.Waiting = plusKnown(r.Objects, w.objects), plusKnown(r.Waiting, w.waiting)
		r.Baseline, r.Ack = maxKnown(r.Baseline, w.ms(w.baseline)), maxKnown(r.Ack, w.ms(w.ack))
		keyframes, messages = keyframes+s.keyframes, messages+s.messages
		if f := share(s.sharing, s.messages); math.IsNaN(float64(r.Sharing)) || f < r.Sharing {
			r.Sharing = f
		}
	}
	r.Keyframe = share(keyframes, messages)
	return r
}

// step updates the worlds of a player.
func (t *tracked) step(all []replication.Stats) {
	t.worlds = slices.DeleteFunc(t.worlds, func(w trackedWorld) bool {
		return !slices.ContainsFunc(all, func(s replication.Stats) bool { return s.Name == w.name })
	})
	for i := range all {
		s := &all[i]
		k := slices.IndexFunc(t.worlds, func(w trackedWorld) bool { return w.name == s.Name })
		if k < 0 {
			k = len(t.worlds)
			t.worlds = append(t.worlds, trackedWorld{name: s.Name, tickHz: s.TickHz})
		}
		w := &t.worlds[k]
		w.ready, w.objects, w.waiting, w.baseline, w.ack = s.Ready > 0, s.Objects, s.Waiting, s.BaselineAge, s.AckAge
		w.counts[w.steps%len(w.counts)] = worldCounts{s.Messages, 8 * s.WireBytes(), s.Keyframes, s.Sharing, s.Acked, s.Unsent, s.Resets}
		w.steps++
	}
}
