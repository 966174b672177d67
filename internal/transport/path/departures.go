package path

import (
	"cmp"
	"time"
)

// groups is the number of groups of datagrams whose departure is stored.
const groups = 14

// departures stores when datagrams left. Datagrams that leave within a short time form a group.
// Together the groups cover the last round trips.
type departures struct {
	ring    [groups]group
	count   uint32 // number of groups so far
	bytes   uint32 // sent so far, modulo 2^32
	spacing uint32 // minimum time between two groups, in units of Unit; 0: firstSpacing
}

// The first value, the minimum and the maximum of departures.spacing. While datagrams leave
// more often, the groups together cover 14 times the spacing.
const (
	firstSpacing = uint32(20 * time.Millisecond / Unit)
	minSpacing   = uint32(2 * time.Millisecond / Unit)
	maxSpacing   = uint32(100 * time.Millisecond / Unit)
)

// group is a group of datagrams with consecutive packet numbers.
type group struct {
	number uint32 // low bits of the packet number of the first one
	at     uint32 // when it left, in units of Unit, modulo 2^32
	before uint32 // bytes sent before it, modulo 2^32
	last   uint16 // time from the first one to the last one, in units of Unit
	// Sizes of the smallest and of the largest one.
	smallest, largest uint16
}

// add adds a datagram.
func (d *departures) add(now time.Duration, number uint64, size int) {
	at := uint32(now / Unit)
	if d.count == 0 || at-d.ring[(d.count-1)%groups].at >= cmp.Or(d.spacing, firstSpacing) {
		d.ring[d.count%groups] = group{number: uint32(number), at: at, before: d.bytes, smallest: uint16(size)}
		d.count++
	}
	g := &d.ring[(d.count-1)%groups]
	g.last = uint16(at - g.at)
	g.smallest, g.largest = min(g.smallest, uint16(size)), max(g.largest, uint16(size))
	d.bytes += uint32(size)
}

// departure describes the datagrams up to one that has arrived.
type departure struct {
	at    uint32 // when it left, in units of Unit, modulo 2^32
	bytes uint32 // bytes sent up to it, modulo 2^32
	group uint32 // upper bound of the number of bytes of its group up to it
	size  uint16 // size of the smallest datagram of its group
}

// find returns the departure of the datagram with a packet number, of which it uses the low 32
// bits. next is the number of the next datagram. It returns false if the datagram is too old.
// It adapts the spacing of later groups.
func (d *departures) find(now time.Duration, number, next uint32) (departure, bool) {
	after, end := next, d.bytes
	for i := d.count; i > 0 && i+groups > d.count; i-- {
		g := &d.ring[(i-1)%groups]
		if int32(number-g.number) >= 0 {
			d.cover(now, g.at)
			count, size := after-g.number, end-g.before
			n := number - g.number + 1
			upTo := uint32(uint64(size) * uint64(n) / uint64(count))
			at := g.at
			if count > 1 { // they left at about equal intervals, or all at once
				at += uint32(g.last) * (n - 1) / (count - 1)
			}
			return departure{at, g.before + upTo, min(n*uint32(g.largest), size), g.smallest}, true
		}
		after, end = g.number, g.before
	}
	d.spacing = min(2*cmp.Or(d.spacing, firstSpacing), maxSpacing)
	return departure{}, false
}

// cover adapts the spacing so that the groups cover more than the time since a departure.
func (d *departures) cover(now time.Duration, at uint32) {
	d.spacing = min(max(3*(uint32(now/Unit)-at)/(2*groups), minSpacing), maxSpacing)
}

// rate returns the rate of the stored departures, in bytes/s.
func (d *departures) rate(now time.Duration) float64 {
	oldest := &d.ring[(d.count-min(d.count, groups))%groups]
	return float64(d.bytes-oldest.before) / max(time.Duration(uint32(now/Unit)-oldest.at)*Unit, time.Second/100).Seconds()
}
