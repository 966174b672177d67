package replication

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/replication/fragment"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/transport"
)

// minState is the minimum room for state in a message, in bytes. Smaller messages would consist
// mostly of headers.
const minState = 72

// StateConfig configures a replica that uses StateCodec. All fields are required.
type StateConfig struct {
	Bandwidth    int // bits per second, including all headers down to IP
	MinBandwidth int // bits per second to which congestion reduces it at most
	InputTicks   int // see statesync.Config.Ticks
}

// stateWorld is the part of a World that all replicas with StateCodec share.
type stateWorld struct {
	config statesync.Config // settings that both ends share

	mu    sync.Mutex // guards the rest while replicas send
	world *statesync.Shared
	begun uint64 // value of World.begun at the last update
}

func (f *StateFormat) newWorld(tickHz float64) (*stateWorld, error) {
	cfg, err := f.Config(tickHz)
	if err != nil {
		return nil, err
	}
	w, err := statesync.NewShared(f.Schema, cfg)
	return &stateWorld{config: cfg, world: w}, err
}

// update sets the newest tick, unless another replica has set it.
func (s *stateWorld) update(w *World) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == w.begun {
		return nil
	}
	s.begun = w.begun
	return s.world.SetTick(int64(w.last), w.newest)
}

type stateSender struct {
	world  *World
	player Player
	rateHz float64 // messages per second
	// Bytes of a datagram besides the message, from the IP header to the message type.
	overhead int

	// Fields that are kept when the client resubscribes:
	cfg       StateConfig
	viewer    uint16
	hasViewer bool
	first     uint64 // number of the first message after a resubscription
	epoch     uint8  // epoch of the first message

	*stateEncoder // nil while stopped
}

// stateEncoder contains the fields of a stateSender that are discarded when the client
// unsubscribes.
type stateEncoder struct {
	sender *statesync.Sender
	next   uint64    // value of World.begun at the newest tick that was sent
	left   time.Time // time at which the last message was sent, or start was called
	ticks  Ticks
	last   statesync.Info // describes the last message
	resets uint64         // number of resets that Stats contains
}

func (s *stateSender) start(now time.Time) {
	cfg := s.world.state.config
	cfg.Ticks = s.cfg.InputTicks
	cfg.First, cfg.Epoch = s.first, s.epoch
	sender, err := s.world.state.world.NewSender(cfg)
	if err != nil {
		panic(err) // NewWorld and the caller of OfferState have checked everything
	}
	if s.hasViewer {
		sender.SetViewer(s.viewer)
	}
	s.stateEncoder = &stateEncoder{sender: sender, left: now}
}

func (s *stateSender) stop() { s.stateEncoder = nil }

// bandwidth returns the bandwidth that the configuration and the path permit, in bits per second.
func (s *stateSender) bandwidth() float64 {
	return max(min(s.player.Rate(), float64(s.cfg.Bandwidth)), float64(s.cfg.MinBandwidth))
}

func (s *stateSender) message(own *[]byte, limit int, now time.Time) ([]byte, error) {
	w := s.world
	if w.begun == s.next {
		return nil, errNothing
	}
	bytes, most := s.room(now)
	if bytes < most && bytes < minState {
		return nil, errNothing
	}
	if err := s.sender.SetBudget(max(1, min(bytes, limit, statesync.MaxPacket))); err != nil {
		return nil, err
	}
	if err := w.state.update(w); err != nil {
		return nil, err
	}
	out, info, err := s.sender.Append((*own)[:0])
	// The next message may have more room.
	if errors.Is(err, statesync.ErrBudget) && bytes < most {
		return nil, errNothing
	}
	if err != nil {
		return nil, err
	}
	*own = out
	s.next, s.left, s.last = w.begun, now, info
	s.first, s.epoch = s.sender.Next()
	s.ticks.Set(info.Seq, w.last)
	return out, nil
}

// room returns the room for state in a message now, and its maximum, both in bytes. The room is the
// size that the bandwidth permits since the last message. The maximum is a datagram, or the
// bandwidth per message if that is more.
func (s *stateSender) room(now time.Time) (bytes, most int) {
	bytesPerSecond := s.bandwidth() / 8
	largest := max(bytesPerSecond/s.rateHz, float64(s.wireSize(transport.MaxPayload-1)))
	due := min(bytesPerSecond*now.Sub(s.left).Seconds(), largest)
	return s.messageSize(int(due)), s.messageSize(int(largest))
}

// wireSize returns the size of a message on the wire, in bytes, with the headers of all its
// datagrams.
func (s *stateSender) wireSize(message int) int {
	if message < transport.MaxPayload {
		return s.overhead + message
	}
	fragments := (message + MaxFragment - 1) / MaxFragment
	return fragments*(s.overhead+fragment.HeaderSize) + message
}

// messageSize returns the size of the largest message that takes at most that many bytes on the
// wire.
func (s *stateSender) messageSize(wire int) int {
	whole := min(wire-s.overhead, transport.MaxPayload-1)
	full := s.overhead + fragment.HeaderSize + MaxFragment
	fragments, rest := wire/full, wire%full
	return max(0, whole, fragments*MaxFragment+max(0, rest-s.overhead-fragment.HeaderSize))
}

func (s *stateSender) ack(b []byte, _ time.Time) (acked int, tick uint64, err error) {
	a, rest, err := statesync.ParseAck(b)
	if err == nil && len(rest) > 0 {
		err = snapshot.ErrMalformed
	}
	before := s.sender.Stats()
	if err == nil {
		err = s.sender.Ack(a)
	}
	// No new Acks: the ack is of another epoch.
	if err != nil || a.None || s.sender.Stats().Acks == before.Acks {
		return 0, 0, err
	}
	if newest := seq.Recent(a.Newest, s.last.Seq); s.last.Seq-newest < snapshot.Ring {
		tick = s.ticks[newest%snapshot.Ring]
	}
	return int(s.sender.Stats().Acked - before.Acked), tick, nil
}

func (s *stateSender) received(dst []uint64) []uint64 { return dst }

func (s *stateSender) count(st *Stats) {
	st.BaselineAge = s.ticks.age(s.last.Seq, s.last.Baseline)
	st.Objects, st.Waiting = s.last.Known, s.last.Overdue
	st.Sharing++
	st.Updates += uint64(len(s.last.Objects))
	resets := s.sender.Stats().Starts
	st.Resets += resets - s.resets
	s.resets = resets
}

// atRest is the end of the description of the field that is above 0 while an object is at rest.
const atRest = " rest"

// StateFormat describes objects that are sent with StateCodec. Both ends derive the same format
// from the same T.
type StateFormat struct {
	// Fields describes the fields of an object, for offers.
	Fields []string

	// Schema is the schema of the objects' rows.
	Schema *snapshot.Schema

	source *schema.Schema
	rest   string // the field that is above 0 while an object is at rest, or ""
}

// StateFormatOf describes objects of type typ. The tags of T declare velocities; the tag
// statesync:"rest" marks the field that is above 0 while an object is at rest. An error names the
// field that is not supported.
func StateFormatOf[T any](typ *snapshot.Type[T]) (*StateFormat, error) {
	rest, err := restOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	f := &StateFormat{Fields: versions.Descriptions(typ.Source()), Schema: typ.Schema(), source: typ.Source(), rest: rest}
	if rest != "" {
		i := slices.IndexFunc(f.source.Fields(), func(f schema.Field) bool { return f.Name == rest })
		if i < 0 {
			return nil, fmt.Errorf("field %q: statesync:\"rest\" on a field that is not sent", rest)
		}
		f.Fields[i] += atRest
	}
	_, err = f.NewReceiver(f.source.PerTick()) // whether a format is supported does not depend on the tick rate
	return f, err
}

// ParseStateFormat returns the format that an offer describes. Any input is safe.
func ParseStateFormat(name string, descriptions []string) (*StateFormat, *schema.Schema, error) {
	f := &StateFormat{Fields: slices.Clone(descriptions)}
	plain := slices.Clone(descriptions)
	for i, d := range plain {
		if field, ok := strings.CutSuffix(d, atRest); ok {
			plain[i] = field
			if f.rest != "" {
				return nil, nil, fmt.Errorf("field %q: another field marks objects at rest", d)
			}
			f.rest, _, _ = strings.Cut(d, " ")
		}
	}
	var err error
	f.source, f.Schema, err = ParseFields(name, plain)
	if err != nil {
		return nil, nil, err
	}
	return f, f.source, nil
}

// Config returns the settings that both ends share at tickHz ticks per second.
func (f *StateFormat) Config(tickHz float64) (statesync.Config, error) {
	source, err := f.source.AtRate(tickHz)
	if err != nil {
		return statesync.Config{}, err
	}
	return statesync.Config{Velocities: source.Velocities(), Rest: f.rest}, nil
}

// NewReceiver returns a receiver for the velocities of an offer, see [Offer.PerTick].
func (f *StateFormat) NewReceiver(perTick []int64) (*statesync.Receiver, error) {
	source, err := f.source.WithPerTick(f.source.RateHz(), perTick)
	if err != nil {
		return nil, err
	}
	return statesync.NewReceiver(f.Schema, statesync.Config{Velocities: source.Velocities(), Rest: f.rest})
}

// restOf returns the name of the field with the tag statesync:"rest", or "".
func restOf(t reflect.Type) (rest string, err error) {
	for i := range t.NumField() {
		f, name := t.Field(i), ""
		tag, ok := f.Tag.Lookup("statesync")
		switch {
		case ok && tag != "rest":
			return "", fmt.Errorf(`field %q: unknown tag statesync:%q, want "rest"`, f.Name, tag)
		case ok:
			name = f.Name
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			if name, err = restOf(f.Type); err != nil {
				return "", err
			}
		}
		if name != "" && rest != "" {
			return "", fmt.Errorf(`field %q: statesync:"rest" is on %q already`, name, rest)
		}
		rest += name
	}
	return rest, nil
}
