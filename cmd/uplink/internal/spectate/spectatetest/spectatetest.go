// Package spectatetest makes captures that contain a world, without a server.
package spectatetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/fakeconn"
)

// World is the name of the world of Messages.
const World = "town"

type car struct {
	At   schema.Vec2 `uplink:"resolution=0.5"`
	Name string      `uplink:"max=8"`
}

// Messages returns the messages of a server for a world with areas: an offer, and a datagram per
// tick. In the world, a car drives along the x axis by half a unit per tick.
func Messages(t testing.TB, ticks int) (offer []byte, datagrams [][]byte) {
	t.Helper()
	typ, err := snapshot.Compile[car]("car")
	uplinktest.Must(t, err)
	w, err := replication.NewWorld(typ, World, 60, 60, nil)
	uplinktest.Must(t, err)
	uplinktest.Must(t, w.WithAreas(1000))
	var conn fakeconn.Conn
	streams := replication.NewReplicas(&conn)
	stream, err := w.Offer(streams)
	uplinktest.Must(t, err)
	stream.See([]area.ID{1})
	offer = bytes.Clone(conn.Last)
	uplinktest.Must(t, streams.HandleReply(ready()[1:], nil, time.Unix(0, 0)))
	row := make([]int32, typ.Schema().Components())
	for tick := range ticks {
		uplinktest.Must(t, w.Begin(uint64(tick)))
		for i, in := range []area.ID{1, 2} {
			c := car{schema.Vec2{X: float64(tick) / 2, Y: float64(i)}, "car"}
			uplinktest.Must(t, typ.Quantize(row, &c))
			uplinktest.Must(t, w.Put(0, snapshot.Object{ID: uint16(i)}, row, in))
		}
		w.Commit()
		uplinktest.Must(t, stream.Send(time.Unix(0, 0)))
		datagrams = append(datagrams, bytes.Clone(conn.Last))
		ack := snapshot.Ack{Newest: uint16(tick), Window: 1<<min(tick, 63) - 1}
		uplinktest.Must(t, streams.HandleAck(ack.Append([]byte{0}), time.Unix(0, 0)))
	}
	return offer, datagrams
}

func ready() []byte { return replication.AppendReply(nil, 0, replication.Ready) }

// Capture is a capture of one player, who accepts each offer.
type Capture struct{ b []byte }

// New returns a capture without a message.
func New() *Capture {
	return &Capture{capture.AppendRecord(capture.AppendHeader(nil), 0, &record.Start{Wall: time.Unix(0, 0)})}
}

// Message adds a message that the server sends.
func (c *Capture) Message(b []byte) {
	c.b = capture.AppendRecord(c.b, 0, &record.Message{Player: 1, Sent: true, Body: b})
	c.b = capture.AppendRecord(c.b, 0, &record.Message{Player: 1, Body: ready()})
}

// Datagram adds a datagram that the server sends 10 ms later.
func (c *Capture) Datagram(b []byte) {
	c.b = capture.AppendRecord(c.b, 10*time.Millisecond, &record.Datagram{Player: 1, Sent: true, Body: b})
}

// File returns the file.
func (c *Capture) File() []byte { return capture.AppendRecord(bytes.Clone(c.b), 0, &record.End{}) }
