// Package spectate decodes the snapshots of a world in a capture, as they were sent to one player.
package spectate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Options configure a playback.
type Options struct {
	// World is the name of the world.
	World string
	// Player is the number of the player in the file; 0 means the first player to whom the world is
	// offered.
	Player uint64
	// Memory limits the size of decoded snapshots in bytes; 0 means [budget.Default].
	Memory int64
	// Each is called with each snapshot, which is valid during the call. An error ends the
	// playback.
	Each func(*Snapshot) error
}

// Report is the result of a playback.
type Report struct {
	// Player is the number of the player, 0 if the world is offered to no player.
	Player uint64
	// Snapshots counts decoded snapshots, Skipped snapshots that could not be decoded.
	Snapshots, Skipped uint64
	// Worlds are the names of all worlds that are offered to the player, or to any player if Player
	// is 0.
	Worlds []string
}

// ErrState reports a world that is sent as state.
var ErrState = errors.New("it is sent as state; only snapshots can be shown")

type playback struct {
	options Options
	report  Report
	limit   int64
	all     replication.Subscriptions
	worlds  *replication.Worlds
	sub     *replication.Subscription
	world   *world
	at      time.Duration
	err     error // error that ends the playback
}

// Run reads a capture. The report covers the records read, also if there is an error.
func Run(r io.Reader, o Options) (Report, error) {
	in, err := capture.NewReader(r)
	if err != nil {
		return Report{}, err
	}
	p := &playback{options: o, limit: o.Memory}
	if p.limit == 0 {
		p.limit = budget.Default
	}
	p.report.Player = o.Player
	p.open()
	for p.err == nil {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p.report, err
		}
		p.at = max(p.at, rec.At)
		switch b := rec.Body.(type) {
		case *record.Message:
			p.message(b)
		case *record.Datagram:
			if b.Sent && b.Player == p.report.Player {
				p.datagram(b.Body)
			}
		case *record.Closed:
			if b.Player == p.report.Player {
				p.worlds.End()
				p.open()
			}
		}
	}
	return p.report, p.err
}

func (p *playback) now() time.Time { return time.Unix(0, int64(p.at)) }

// message handles a message of the reliable channel.
func (p *playback) message(b *record.Message) {
	t, body, err := message.Split(b.Body)
	if err != nil {
		return
	}
	if b.Sent && t == message.Offer {
		p.offered(b.Player, body)
	}
	switch {
	case p.sub == nil || b.Player != p.report.Player:
	case b.Sent && (t == message.Offer || t == message.Piece || t == message.Stop):
		_ = p.worlds.HandleMessage(t, body, p.now()) // an error of the server, or of a damaged file
	case !b.Sent && t == message.Reply && len(body) >= 2 && replication.Answer(body[1]) == replication.Ready && body[0] == p.world.offer.Number:
		p.restart()
	}
}

// offered records an offer and selects the player.
func (p *playback) offered(player uint64, body []byte) {
	o, err := replication.ParseOffer(body)
	if err != nil || p.report.Player != 0 && p.report.Player != player {
		return
	}
	if !slices.Contains(p.report.Worlds, o.Name) && len(p.report.Worlds) < maxWorlds {
		p.report.Worlds = append(p.report.Worlds, o.Name)
	}
	if o.Name != p.options.World {
		return
	}
	if p.report.Player = player; p.sub == nil {
		p.world = &world{playback: p}
		p.subscribe()
	}
}

// maxWorlds limits the names that a report contains.
const maxWorlds = 64

// open begins a session.
func (p *playback) open() {
	p.worlds = p.all.Open(link{})
	p.worlds.Show(p.now())
}

func (p *playback) subscribe() {
	p.sub, p.err = p.all.Subscribe(p.options.World, p.world, replication.MaxRate, p.now())
}

// restart begins a stream: the client is ready for the first message.
func (p *playback) restart() {
	p.all.Unsubscribe(p.sub, p.now())
	p.subscribe()
}

// datagram handles a datagram to the player.
func (p *playback) datagram(b []byte) {
	t, body, err := message.Split(b)
	if err == nil && (t == message.WithAcks || t == message.WithSlack) {
		if _, b, err = message.ParseWithAcks(body); err == nil {
			t, body, err = message.Split(b)
		}
	}
	if err == nil && (t == message.Down || t == message.DownFragment) {
		_ = p.worlds.HandleDatagram(t, body, p.now()) // a message of another world
	}
}

// link is a session without a server: it discards answers and acks.
type link struct{}

func (link) Send([]byte) error         { return nil }
func (link) SendReliable([]byte) error { return nil }
func (link) Wake(time.Time)            {}
func (link) RTT() time.Duration        { return 0 }
func (link) Overhead() uint64          { return 0 }

// world receives the snapshots. It is a [replication.View], and the receiver of each offer.
type world struct {
	playback *playback
	decoder  replication.SnapshotDecoder
	own      *snapshot.Schema // schema of decoder
	offer    replication.Offer
	types    []objectType
	shown    Snapshot
}

type objectType struct {
	name   string
	source *schema.Schema
	frame  *schema.Frame
}

func (w *world) NewReceiver() replication.Receiver { return w }

func (w *world) Check(o *replication.Offer) (d message.Differences, err error) {
	if o.Codec != replication.SnapshotCodec {
		w.playback.err = ErrState
		return d, ErrState
	}
	w.types = w.types[:0]
	own, err := w.addType(o.Name, o.Fields)
	var further []*snapshot.Schema
	for _, t := range o.Types {
		s, each := w.addType(t.Name, t.Fields)
		further, err = append(further, s), errors.Join(err, each)
	}
	if err != nil {
		w.playback.err = fmt.Errorf("the offer of %s: %w", o.Name, err)
		return d, err
	}
	if o.Number != w.offer.Number || o.Hash != w.offer.Hash || w.offer.Name == "" {
		w.own, w.decoder = own, replication.NewSnapshotDecoder(own, own.NewSet())
	}
	w.decoder.SetTypes(w.own, further...)
	w.offer = *o
	return d, nil
}

func (w *world) addType(name string, fields []string) (*snapshot.Schema, error) {
	source, rows, err := replication.ParseFields(name, fields)
	if err != nil {
		return nil, err
	}
	w.types = append(w.types, objectType{name, source, source.NewFrame()})
	return rows, nil
}

func (w *world) Knows(hash uint64) bool                           { return w.decoder.Knows(hash) }
func (w *world) Begin(o *replication.Offer, initial []byte) error { return w.decoder.Begin(o, initial) }

func (w *world) AppendAck(dst []byte) []byte { return w.decoder.AppendAck(dst) }
func (w *world) Show()                       {}
func (w *world) Deliver()                    {}
func (w *world) End()                        {}
func (w *world) Game(uint64, []byte)         {}
func (w *world) Receive(message []byte, _ replication.Processed, _ time.Time, _ bool, st *replication.Stats) (uint64, bool, error) {
	p := w.playback
	tick, set, err := w.decoder.Decode(message)
	if err != nil {
		p.report.Skipped++
		replication.CountError(st, err)
		return 0, false, err
	}
	if int64(w.decoder.Memory()) > p.limit {
		p.err = &budget.Error{Limit: p.limit}
		return 0, false, p.err
	}
	s := &w.shown
	s.World, s.Player, s.Seconds, s.Tick, s.Objects = w.offer.Name, p.report.Player, p.at.Seconds(), tick, s.Objects[:0]
	w.add(0, set)
	for i := range w.types[1:] {
		w.add(i+1, w.decoder.Further(i))
	}
	p.report.Snapshots++
	p.err = p.options.Each(s)
	return tick, w.decoder.Complete(), nil
}

// add adds the objects of a type.
func (w *world) add(typ int, set *snapshot.Set) {
	t, ages := &w.types[typ], w.decoder.Ages(typ)
	for i := range set.Len() {
		o := set.Object(i)
		set.Schema().Unpack(t.frame, set.Row(i))
		age := uint64(0)
		if i < len(ages) {
			age = ages[i]
		}
		w.shown.Objects = append(w.shown.Objects, Object{t.name, o.ID, o.Generation, age, t.values()})
	}
}
