package visits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
)

// Result is the result of a run.
type Result struct {
	Servers   int       `json:"servers"`
	Players   int       `json:"players"`
	Handovers Handovers `json:"handovers"`
	Calls     uint64    `json:"calls"` // received calls
	// Mismatches counts calls with wrong arguments, handovers with an unexpected payload, and calls
	// that two servers received.
	Mismatches uint64 `json:"mismatches"`
	// Reliable counts reliable calls and messages in both directions, until the last handover.
	Reliable uint64 `json:"reliable"`
	Lost     uint64 `json:"reliable_lost"`
	Doubled  uint64 `json:"reliable_doubled"`
	// Missing is the number of calls lost at a switch: those between the last call that a server
	// received and the first call that the next server received.
	Missing Distribution `json:"missing"`
	// Unplanned counts sessions that ended by themselves before servers were killed.
	Unplanned int       `json:"unplanned"`
	Reasons   []string  `json:"reasons,omitempty"` // reasons of some failures
	Snapshots uint64    `json:"snapshots"`
	Drains    []Drained `json:"drains"`
	// Orphans is the number of players whose servers were killed. Back is the number of them that
	// called another server, and the times at which they did.
	Orphans int           `json:"orphans"`
	Back    int           `json:"back"`
	Return  meter.Summary `json:"return"`
	// Slowest is the log of the slowest of these clients, with times since the kill.
	Slowest string `json:"slowest,omitempty"`

	missing []int
}

// Distribution describes numbers.
type Distribution struct {
	Count  int `json:"count"`
	Median int `json:"median"`
	P99    int `json:"p99"`
	Max    int `json:"max"`
}

// add counts the records of the servers, and the messages that the bots received.
func (res *Result) add(records []Record, players []*player) {
	byClient := map[uint64][]Visit{}
	for _, r := range records {
		res.Handovers.Completed += r.Handovers.Completed
		res.Handovers.Failed += r.Handovers.Failed
		res.Handovers.Ended += r.Handovers.Ended
		for _, v := range r.Visits {
			byClient[v.Client] = append(byClient[v.Client], v)
		}
	}
	for _, p := range players {
		res.client(p, byClient[p.id])
	}
	slices.Sort(res.missing)
	if n := len(res.missing); n > 0 {
		res.Missing = Distribution{n, res.missing[n/2], res.missing[n*99/100], res.missing[n-1]}
	}
}

// client counts the visits of one client.
func (res *Result) client(p *player, visits []Visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(visits, func(a, b Visit) int { return cmp.Compare(a.First, b.First) })
	var bought, sent []Span
	last := int32(-1)
	for _, v := range visits {
		bought, sent = append(bought, v.Reliable...), append(sent, v.Messages...)
		res.arrived(p.received[v.ID], v.Sent)
		res.Calls += v.Calls
		res.Mismatches += v.Wrong
		if !v.Payload {
			res.Mismatches++
		}
		if v.Calls == 0 {
			continue
		}
		if missing := int(v.First - last - 1); last >= 0 && missing >= 0 {
			res.missing = append(res.missing, missing)
		} else if missing < 0 {
			res.Mismatches += uint64(-missing)
		}
		last = v.Last
	}
	res.arrived(bought, uint32(p.bought))
	res.arrived(sent, p.sent)
	res.Mismatches += uint64(p.invalid)
	res.Unplanned += len(p.lost)
	res.Reasons = append(res.Reasons, p.lost...)[:min(len(res.Reasons)+len(p.lost), 5)]
	res.Snapshots += p.snapshots.Load()
}

func (res *Result) arrived(got []Span, sent uint32) {
	lost, doubled := count(got, sent)
	res.Reliable += uint64(sent)
	res.Lost += lost
	res.Doubled += doubled
}

// returned measures when players of servers that were killed at the time killed called other
// servers. before has the records of all servers before the kill, those of killed servers first.
// after contains the records of the remaining servers. It returns the slowest player, or 0 if there
// is none.
func (res *Result) returned(before, after []Record, killed time.Time) (slowest uint64) {
	type place struct {
		server int
		last   int32 // number of the last call
	}
	places := map[uint64]place{} // by client
	for i, r := range before {
		for _, v := range r.Visits {
			if p, known := places[v.Client]; !known || v.Last > p.last {
				places[v.Client] = place{i, v.Last}
			}
		}
	}
	back := map[uint64]time.Duration{}
	for _, r := range after {
		for _, v := range r.Visits {
			took := v.Called.Sub(killed)
			if old, known := back[v.Client]; took > 0 && v.Calls > 0 && (!known || took < old) {
				back[v.Client] = took
			}
			res.Mismatches += v.Wrong
		}
	}
	times, longest := meter.NewDurations(), time.Duration(-1)
	for client, p := range places {
		if p.server >= kills {
			continue
		}
		res.Orphans++
		took, ok := back[client]
		if !ok {
			took = afterKill
		} else {
			times.Add(took)
		}
		if took > longest {
			slowest, longest = client, took
		}
	}
	res.Return = times.Summary()
	res.Back = int(res.Return.Count)
	return slowest
}

func (res *Result) handovers() string {
	return fmt.Sprintf("%d handovers, %d refused, %d ended; %d calls, %d mismatches; %d reliable ones, %d lost, %d doubled; missing at a handover: median %d, 99th percentile %d, maximum %d; %d sessions ended unplanned, %d snapshots",
		res.Handovers.Completed, res.Handovers.Failed, res.Handovers.Ended, res.Calls, res.Mismatches, res.Reliable, res.Lost, res.Doubled,
		res.Missing.Median, res.Missing.P99, res.Missing.Max, res.Unplanned, res.Snapshots)
}

func (res *Result) returns() string {
	return fmt.Sprintf("killed %d servers of %d players: %d are back after %v", kills, res.Orphans, res.Back, res.Return)
}

// Bounds of a run.
const (
	MaxMissing = 2 // 99th percentile of calls at a handover
	MaxDrain   = 30 * time.Second
	MaxReturn  = 3000 // ms
)

// Verdict returns an error if a bound is exceeded.
func (res *Result) Verdict() error {
	var errs []error
	check := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(res.Mismatches > 0, "%d mismatches", res.Mismatches)
	check(res.Lost+res.Doubled > 0, "%d reliable calls or messages were lost, %d arrived twice", res.Lost, res.Doubled)
	check(res.Unplanned > 0, "%d sessions ended by themselves: %q", res.Unplanned, res.Reasons)
	check(res.Missing.P99 > MaxMissing, "%d calls are missing at a handover at the 99th percentile, want at most %d", res.Missing.P99, MaxMissing)
	for _, d := range res.Drains {
		check(d.Took > MaxDrain, "a drain of %d players took %v, want at most %v", d.Players, d.Took, MaxDrain)
	}
	check(res.Back < res.Orphans, "%d of %d players of the killed servers are not back", res.Orphans-res.Back, res.Orphans)
	check(res.Return.Max > MaxReturn, "players of the killed servers were back after up to %v ms, want %v", meter.Ms(res.Return.Max), MaxReturn)
	return errors.Join(errs...)
}
