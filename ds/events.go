package ds

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Event is an event of a player's session or of a client that requested one, or of the ticks of a
// server; see [Server.Events] and Stats.Events.
type Event struct {
	// Kind is joined, reconnected, moved, handover, left, refused, bind_refused, call_refused,
	// world_refused, mismatch, ahead_of_time, panic,
	// tick_rate or world_rate. reconnected means that a client
	// joined that one of the last 256 events names.
	Kind string
	// Cause is one word. For left, refused and handover, it identifies an error of package
	// transport or token, such as kicked or token_expired, or the outcome of the handover. For
	// bind_refused (an RPC of the server), call_refused (an RPC of the client) and world_refused,
	// it is the reason of the refusal. For mismatch it is rpc, call or world. For tick_rate it is
	// off or normal. For world_rate it is slow or normal: whether a player's path carries fewer
	// messages of a world than it has. It is empty for the other kinds.
	Cause string
	// At is the time of the event, or of the last one if Count is more than 1.
	At time.Time
	// Player is [Player.ID] and Client is [Player.ClientID]. Both are 0 if they are not known.
	Player, Client uint64
	// Text contains details for people, at most 256 bytes. Clients and the game can influence it.
	Text string
	// Count is the number of equal events of the same player, or of all clients for refused, each
	// less than ten seconds after the one before.
	Count uint64
}

const (
	maxEvents    = 256
	maxEventText = 256
	// eventSpan is the time within which equal events are counted as one, so that one client does
	// not displace the events of others.
	eventSpan = 10 * time.Second
)

// eventType is an index of eventTypes.
type eventType uint8

// eventTypes are the kinds of events with their causes. The errors of one kind are looked up in
// order.
var eventTypes = func() (all []struct {
	kind, cause string
	err         error
},
) {
	add := func(kind, cause string, err error) {
		all = append(all, struct {
			kind, cause string
			err         error
		}{kind, cause, err})
	}
	for _, kind := range [...]string{"joined", "reconnected", "moved", "ahead_of_time", "panic"} {
		add(kind, "", nil)
	}
	add("tick_rate", "off", nil)
	add("tick_rate", "normal", nil)
	add("world_rate", "slow", nil)
	add("world_rate", "normal", nil)
	for _, c := range [...]struct {
		cause string
		err   error
	}{
		{"panic", transport.ErrPanic},
		{"kicked", transport.ErrKicked},
		{"limit", transport.ErrLimit},
		{"protocol", transport.ErrProtocol},
		{"timeout", transport.ErrTimeout},
		{"replaced", transport.ErrReplaced},
		{"shutdown", transport.ErrShutdown},
		{"handed_over", transport.ErrHandedOver},
		{"quit", transport.ErrQuit},
		{"other", nil},
	} {
		add("left", c.cause, c.err)
	}
	for _, c := range [...]struct {
		cause string
		err   error
	}{
		{"completed", transport.ErrHandedOver},
		{"failed", transport.ErrHandover},
		{"unsupported", transport.ErrUnhandled},
		{"ended", nil},
	} {
		add("handover", c.cause, c.err)
	}
	for _, c := range [...]struct {
		cause string
		err   error
	}{
		{"server_full", transport.ErrServerFull},
		{"draining", transport.ErrDraining},
		{"store", transport.ErrStore},
		{"server_busy", transport.ErrServerBusy},
		{"shutdown", transport.ErrShutdown},
		{"version", transport.ErrVersion},
		{"no_suite", transport.ErrNoSuite},
		{"token_expired", token.ErrExpired},
		{"token_used", token.ErrUsed},
		{"token_wrong_server", token.ErrWrongServer},
		{"token_stale", token.ErrStale},
		{"token_ahead", token.ErrAhead},
		{"token_wrong_key", token.ErrWrongKey},
		{"other", nil},
	} {
		add("refused", c.cause, c.err)
	}
	for _, kind := range [...]string{"call", "rpc", "world"} {
		add("mismatch", kind, nil)
	}
	for _, c := range [...]struct {
		kind, cause string
		reason      message.Reason
	}{
		{"bind_refused", "unknown_rpc", message.ReasonUnknown},
		{"bind_refused", "schema", message.ReasonSchema},
		{"bind_refused", "codec", message.ReasonCodec},
		{"bind_refused", "number", message.ReasonNumber},
		{"bind_refused", "invalid", message.ReasonInvalid},
		{"bind_refused", "rate", message.ReasonRate},
		{"bind_refused", "fixed_rate", message.ReasonFixedRate},
		{"bind_refused", "reliable", message.ReasonReliable},
		{"call_refused", "unknown_rpc", message.ReasonUnknown},
		{"call_refused", "schema", message.ReasonSchema},
		{"call_refused", "codec", message.ReasonCodec},
		{"call_refused", "other", message.ReasonNone},
		{"world_refused", "unknown_world", message.ReasonUnknown},
		{"world_refused", "schema", message.ReasonSchema},
		{"world_refused", "codec", message.ReasonCodec},
		{"world_refused", "other", message.ReasonNone},
	} {
		add(c.kind, c.cause, reasonError(c.reason))
	}
	return all
}()

// The types without errors, in the order of eventTypes.
const (
	joinedEvent eventType = iota
	reconnectedEvent
	movedEvent
	aheadEvent
	panicEvent
	tickRateOffEvent
	tickRateNormalEvent
	worldRateSlowEvent
	worldRateNormalEvent
)

// eventOf returns the type of the events of a kind for an error. If the kind lists no matching
// error, it returns the last type of the kind.
func eventOf(kind string, cause error) (t eventType) {
	for i, e := range eventTypes {
		if e.kind != kind {
			continue
		}
		if t = eventType(i); e.err != nil && errors.Is(cause, e.err) {
			break
		}
	}
	return t
}

// reasonError is the reason of an answer as an error, for eventOf.
type reasonError message.Reason

func (e reasonError) Error() string { return message.Reason(e).String() }

// causeOf returns the type of the events of a kind with a cause.
func causeOf(kind, cause string) eventType {
	for i, e := range eventTypes {
		if e.kind == kind && e.cause == cause {
			return eventType(i)
		}
	}
	panic("no event " + kind + " " + cause)
}

// events are the newest events of a server, and the counts of all.
type events struct {
	mu     sync.Mutex
	ring   [maxEvents]event
	next   int      // index of the oldest
	last   uint64   // number of the newest
	counts []uint64 // by type; nil before the first event
}

type event struct {
	at             time.Time
	player, client uint64
	number, count  uint64 // 0 if the entry is unused
	typ            eventType
	text           string
	err            error // if set, text is its text
}

// add adds an event, and reports whether it is new: a repetition only increases the count of an
// earlier event. A client that joins and is known from an earlier event has reconnected.
func (l *events) add(e event) bool {
	if e.text = strings.ToValidUTF8(e.text[:min(len(e.text), maxEventText)], "\uFFFD"); e.at.IsZero() {
		e.at = time.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = make([]uint64, len(eventTypes))
	}
	l.last++
	e.number, e.count = l.last, 1
	for i := range l.ring {
		old := &l.ring[i]
		switch {
		case old.count == 0:
		case e.typ == joinedEvent && old.client == e.client && e.client != 0:
			e.typ = reconnectedEvent
		case old.typ == e.typ && old.player == e.player && e.at.Sub(old.at) < eventSpan:
			l.counts[e.typ]++
			e.count += old.count
			*old = e
			return false
		}
	}
	l.counts[e.typ]++
	l.ring[l.next] = e
	l.next = (l.next + 1) % maxEvents
	return true
}

// newest returns up to maxEvents events, the newest first.
func (l *events) newest() (out []Event) {
	l.mu.Lock()
	ring := l.ring
	l.mu.Unlock()
	slices.SortFunc(ring[:], func(a, b event) int { return cmp.Compare(b.number, a.number) })
	for i := range ring {
		if e := &ring[i]; e.count > 0 {
			t := eventTypes[e.typ]
			out = append(out, Event{Kind: t.kind, Cause: t.cause, At: e.at, Player: e.player, Client: e.client, Text: e.describe(), Count: e.count})
		}
	}
	return out
}

func (e *event) describe() string {
	if e.err == nil {
		return e.text
	}
	text := e.err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxEventText)], "\uFFFD")
}

// total returns the number of events of each type since the start, as Event.Count.
func (l *events) total() []Event {
	out := make([]Event, len(eventTypes))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, t := range eventTypes {
		out[i] = Event{Kind: t.kind, Cause: t.cause}
		if l.counts != nil {
			out[i].Count = l.counts[i]
		}
	}
	return out
}
