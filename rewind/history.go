package rewind

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
)

// Config configures a [History]. The zero value of each field means its default; TickHz has no
// default.
type Config struct {
	// TickHz is the number of ticks a second for which Add is called, 1 to 1000.
	TickHz float64
	// Window is the maximum age that Seen returns and At and Object support, up to 10 s; default 1
	// s. For a client whose world is older than that, the oldest time in the history is used.
	Window time.Duration
	// Objects is the maximum number of objects of a tick, at most 65,536; default 1024.
	Objects int
	// Method is the interpolation method of the clients.
	Method interpolate.Method
	// Tolerance is the maximum difference between the time that a client claims to have shown and
	// the expected time, up to 1 s; default 50 ms.
	Tolerance time.Duration
}

const (
	maxWindow    = 10 * time.Second
	maxTolerance = time.Second
)

// Stats counts the claims passed to [History.Seen].
type Stats struct {
	// Claims is the number of claims. Clamped is the number of claims that differed from the
	// expected time by more than Config.Tolerance, or were of a tick that had not been sent.
	// Expired is the number of claims that were, after clamping, before the oldest tick in the
	// history.
	Claims, Clamped, Expired uint64
	// Largest is the largest difference from the expected time.
	Largest time.Duration
}

// History stores the objects T of the ticks within Config.Window. It reuses the memory of removed
// ticks. Queries do not allocate. Not safe for concurrent use.
type History[T any] struct {
	cfg    Config
	buffer *interpolate.Buffer[T]
	newest time.Duration
	oldest time.Duration
	any    bool
	stats  Stats
}

// New returns an empty history of objects whose poses adapter reads and writes;
// [interpolate.Tagged] returns one for a type with tags. An error names the invalid field of cfg.
func New[T any](adapter interpolate.Adapter[T], cfg Config) (*History[T], error) {
	cfg.Window, cfg.Tolerance = cmp.Or(cfg.Window, time.Second), cmp.Or(cfg.Tolerance, 50*time.Millisecond)
	cfg.Objects = cmp.Or(cfg.Objects, 1024)
	if !(cfg.TickHz >= 1 && cfg.TickHz <= 1000) {
		return nil, fmt.Errorf("rewind: Config.TickHz is %v, want 1 to 1000", cfg.TickHz)
	}
	interval := time.Duration(float64(time.Second) / cfg.TickHz)
	switch {
	case cfg.Window < interval || cfg.Window > maxWindow:
		return nil, fmt.Errorf("rewind: Config.Window is %v, want %v to %v", cfg.Window, interval, maxWindow)
	case cfg.Tolerance < 0 || cfg.Tolerance > maxTolerance:
		return nil, fmt.Errorf("rewind: Config.Tolerance is %v, want 0 to %v", cfg.Tolerance, maxTolerance)
	}
	buffer, err := interpolate.New(adapter, interpolate.Config{
		Interval: interval, Method: cfg.Method, Delay: cfg.Window, Snapshots: int(cfg.Window/interval) + 2, Objects: cfg.Objects,
	})
	if err != nil {
		return nil, fmt.Errorf("rewind: %s", strings.TrimPrefix(err.Error(), "interpolate: "))
	}
	return &History[T]{cfg: cfg, buffer: buffer}, nil
}

// Add adds the objects of a tick at its server time, which is the time from tick 0 at
// Config.TickHz. Times and ids ascend; ids are the ones that clients see. Objects are copied, but
// not the memory that they point to. An error names the argument that is out of range, and the
// history does not change.
func (h *History[T]) Add(at time.Duration, ids []uint32, objects []T) error {
	if h.any && at <= h.newest {
		return fmt.Errorf("rewind: time %v after %v, want ascending ones", at, h.newest)
	}
	if err := h.buffer.Add(at, at, ids, objects); err != nil {
		return fmt.Errorf("rewind: %s", strings.TrimPrefix(err.Error(), "interpolate: bad snapshot: "))
	}
	if !h.any {
		h.oldest, h.any = at, true
	}
	h.newest = at
	h.oldest = max(h.oldest, at-h.cfg.Window)
	return nil
}

// Viewer contains the server's estimate of the age of the world that a player sees. The method
// Viewer of the player's stream of package ds returns it, except Waited and Delay.
type Viewer struct {
	// RTT is the round-trip time of the player's connection, and MinRTT the lowest recent one,
	// because interpolation follows the fastest snapshots. A MinRTT of 0 stands for RTT.
	RTT, MinRTT time.Duration
	// Rate is the measured rate of the server's ticks: 0.9 if they take 11 % longer than the
	// nominal time. 0 means 1.
	Rate float64
	// Unsettled is the additional tolerance for honest clients after irregular ticks in the last
	// seconds. It is 0 if the ticks were regular.
	Unsettled time.Duration
	// AckAge is the age of the newest tick that the player's client has acked, 0 if it has acked
	// none. SentAge is the age of the newest tick that was sent to it.
	AckAge, SentAge time.Duration
	// Waited is the time for which the call waited at the server before its handler ran, mainly in
	// a jitter buffer, in real time. For a call that is made each tick, use the mean
	// (ds.BufferStats.Slack): the time that a single call waited is shorter if its datagram took
	// longer.
	Waited time.Duration
	// Delay is the interpolation delay of the player's client, which the game chose, in server
	// time.
	Delay time.Duration
	// Ticks are the times of the ticks that the player's client shows, ascending: the acked ticks,
	// and the ticks sent since the last ack. Other ticks were not sent or are lost. If there are
	// none, or where they are more than Delay apart, the client is assumed to show all ticks. No
	// honest client interpolates over a longer time, so acking few ticks on purpose gains nothing
	// more.
	Ticks []time.Duration
}

// around returns the ticks between which the player's client interpolates at a time, and some
// others. It returns none if they are too far apart.
func (v *Viewer) around(at time.Duration) []time.Duration {
	k, _ := slices.BinarySearch(v.Ticks, at)
	if k > 0 && k < len(v.Ticks) && v.Ticks[k]-v.Ticks[k-1] > v.Delay {
		return nil
	}
	return v.Ticks
}

// expected returns the server time that a player showed when it made the call whose handler runs at
// server time now. It is the later of two times, each less Waited and Delay: now minus the mean of
// RTT and MinRTT, and now minus AckAge. Clients follow the rate of the ticks, so RTT and Waited are
// multiplied by Rate. A client that delays one of the two measurements gains nothing, because the
// other one counts.
func (v Viewer) expected(now time.Duration) time.Duration {
	rate := cmp.Or(v.Rate, 1)
	ticks := func(d time.Duration) time.Duration { return time.Duration(rate * float64(d)) }
	age := ticks((v.RTT + cmp.Or(v.MinRTT, v.RTT)) / 2)
	if v.AckAge > 0 {
		age = min(age, v.AckAge)
	}
	return now - age - ticks(v.Waited) - v.Delay
}

// Seen returns the server time that a player saw when it made the call whose handler runs at server
// time now. claim is the time that its client claims to have shown, such as
// interpolate.Sample.Time. If claim differs from v.expected by more than Config.Tolerance plus
// v.Unsettled, Seen returns the nearest time within this tolerance. So a false claim gains no more
// than the tolerance. A claim after the newest tick sent to the player, SentAge ago, is replaced by
// that tick's time, unless that is too early. off is the claim minus the expected time. The
// returned time is within the history.
func (h *History[T]) Seen(claim, now time.Duration, v Viewer) (at, off time.Duration) {
	expected, tolerance := v.expected(now), h.cfg.Tolerance+v.Unsettled
	// A claim may be any number, so the difference could overflow.
	claim = min(max(claim, expected-time.Hour), expected+time.Hour)
	off = claim - expected
	at = max(min(claim, expected+tolerance, now-v.SentAge), expected-tolerance)
	h.stats.Claims++
	if at != claim {
		h.stats.Clamped++
	}
	if at < h.oldest {
		h.stats.Expired++
	}
	h.stats.Largest = max(h.stats.Largest, off, -off)
	return min(max(at, h.oldest), h.newest), off
}

// Object sets out to an object as a player saw it at a server time that Seen returned, and reports
// whether it existed then. It interpolates between the neighboring ticks in v.Ticks, as the
// player's client did. A time outside of the history is replaced by the nearest time in it.
func (h *History[T]) Object(v Viewer, at time.Duration, id uint32, out *T) bool {
	at = min(max(at, h.oldest), h.newest)
	return h.buffer.ObjectOf(v.around(at), at, id, out)
}

// At sets out to all objects as a player saw them at a server time, as Object does. It reports
// false if the history is empty. It reuses the slices of out.
func (h *History[T]) At(v Viewer, at time.Duration, out *interpolate.Sample[T]) bool {
	at = min(max(at, h.oldest), h.newest)
	return h.buffer.AtOf(v.around(at), at, out)
}

// Stats returns the counts.
func (h *History[T]) Stats() Stats { return h.stats }
