package cost

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// costBatch is the number of calls that are timed together. If acks are not lost, one follows
	// each batch, so baselines are 1 to 12 frames old.
	costBatch = 12
	typeAcks  = 0xc1 // of a message
)

var unsealed = []transport.Suite{transport.None}

// BenchmarkCall measures a whole call over UDP on loopback: the time of Send on the client, and the
// time in which the DS receives the datagram, decodes the frame and runs a handler. Frames are
// deltas, or keyframes because all acks are lost. Datagrams are not encrypted:
// internal/transport/seal measures that. An iteration is a batch of calls; times are those of the
// median batch.
func BenchmarkCall(b *testing.B) {
	for _, codec := range rpcdelta.Codecs() {
		b.Run(codec.String()+"/delta", func(b *testing.B) { benchmarkCall(b, codec, false) })
		b.Run(codec.String()+"/alone", func(b *testing.B) { benchmarkCall(b, codec, true) })
	}
}

func benchmarkCall(b *testing.B, codec rpcdelta.Codec, alone bool) {
	server := &timedSocket{spent: make(chan time.Duration, 1), full: make(chan struct{})}
	left := make(chan struct{})
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{
		Network: server, Tuning: ds.Tuning{AckHz: 1000}, Limits: ds.Limits{RateSlack: 1e6}, Transport: ds.Transport{Insecure: true, Suites: unsealed, Timeout: time.Minute},
		Left: func(*ds.Player, error) { close(left) },
	})
	uplinktest.Must(b, err)
	var frames int
	uplinktest.Must(b, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[uplinktest.Pawn]) { frames++ }))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()
	link := &ackedSocket{deaf: alone, acked: make(chan uint16, 1)}
	conn, err := client.Dial(b.Context(), srv.Addr().String(), client.Config{
		Network: link, Tuning: client.Tuning{Codec: codec}, Transport: client.Transport{Insecure: true, Suites: unsealed, Timeout: time.Minute},
	})
	uplinktest.Must(b, err)
	move, err := client.Bind[uplinktest.Pawn](context.Background(), conn, "Move", client.BindConfig{})
	uplinktest.Must(b, err)
	moves := make([]uplinktest.Pawn, 3600)
	for i := range moves {
		moves[i] = uplinktest.PawnAt(i)
	}

	next, more := 0, 0
	send := func() {
		if _, err := move.Send(&moves[next%len(moves)]); err != nil {
			b.Fatal(err)
		}
		next++
	}
	lost := time.NewTicker(time.Second) // a datagram, as can happen over loopback too
	defer lost.Stop()
	var onClient, onServer []time.Duration // of each batch
	for b.Loop() {
		begin := time.Now()
		for range costBatch {
			send()
		}
		onClient = append(onClient, time.Since(begin))
		server.full <- struct{}{}
		for len(onServer) < len(onClient) {
			select {
			case d := <-server.spent:
				onServer = append(onServer, d)
			case <-lost.C:
				send() // replaces the lost one
				more++
			}
		}
		for acked := alone; !acked; {
			select {
			case n := <-link.acked:
				// Or it is of a tick in the middle of a batch. Where a frame was only late, one
				// lies in the socket until the next batch.
				acked = uint16(next-1)-n <= uint16(more)
			case <-lost.C:
				acked = true // with the next batch
			}
		}
	}

	st := move.Stats()
	close(server.full) // replaced datagrams may have arrived after all
	uplinktest.Must(b, conn.Close())
	<-left // everything sent before has arrived
	uplinktest.Must(b, srv.Close())
	uplinktest.Must(b, <-served)
	first := len(onClient) == 1 // all was sent before an ack
	if frames > next || frames < next-more || alone && st.Delta != 0 || !alone && !first && st.Delta == 0 {
		b.Errorf("%d of %d frames came, %d were deltas", frames, next, st.Delta)
	}
	b.ReportMetric(0, "ns/op") // mostly waiting
	b.ReportMetric(median(onClient)/costBatch, "client-ns/call")
	b.ReportMetric(median(onServer)/(costBatch-1), "ds-ns/call")
	b.ReportMetric(float64(st.FullBits)/float64(next), "fullbits/call")
	b.ReportMetric(float64(st.PayloadBits)/float64(next), "payloadbits/call")
}

// median returns the median in nanoseconds. Other load on the machine hardly affects it.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds())
}

// isFrame reports whether a datagram of a client contains a frame: requests to bind have both high
// bits set.
func isFrame(b []byte) bool {
	m := msg(b)
	return len(m) > 0 && m[0]&message.Mask != message.Mask
}

// message returns the message of an unencrypted datagram, or nil.
func msg(b []byte) []byte {
	if uplinktest.Kind(b) != uplinktest.DataKind {
		return nil
	}
	return b[min(len(b), uplinktest.HeaderSize(b)):]
}

// timedSocket is the DS's network and its socket. It delays the first frame of a batch until the
// whole batch is in the socket, and measures from there until the last one is read.
type timedSocket struct {
	transport.PacketConn
	full  chan struct{}
	spent chan time.Duration
	read  int // frames of the batch
	begin time.Time
}

func (c *timedSocket) ListenPacket(addr string) (pc transport.PacketConn, err error) {
	c.PacketConn, err = transport.UDP().ListenPacket(addr)
	return c, err
}

func (c *timedSocket) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	n, from, err := c.PacketConn.ReadFrom(p)
	if err != nil || !isFrame(p[:n]) {
		return n, from, err
	}
	switch c.read++; c.read {
	case 1:
		<-c.full
		c.begin = time.Now()
	case costBatch:
		c.spent <- time.Since(c.begin)
		c.read = 0
	}
	return n, from, err
}

// ackedSocket is the client's network and its socket. It reports each acked frame after the client
// has processed the ack, or drops the acks.
type ackedSocket struct {
	transport.PacketConn
	deaf  bool
	acked chan uint16
	last  *uint16 // of the ack that the client has just processed
}

func (c *ackedSocket) ListenPacket(addr string) (pc transport.PacketConn, err error) {
	c.PacketConn, err = transport.UDP().ListenPacket(addr)
	return c, err
}

func (c *ackedSocket) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	if c.last != nil {
		select {
		case <-c.acked: // nobody has waited for that
		default:
		}
		c.acked <- *c.last
		c.last = nil
	}
	for {
		n, from, err := c.PacketConn.ReadFrom(p)
		m := msg(p[:n])
		if err != nil || len(m) < 2 || m[0] != typeAcks {
			return n, from, err
		}
		if c.deaf {
			continue
		}
		if ack, _, err := rpcdelta.ParseAck(m[1:]); err == nil {
			c.last = &ack.Seq
		}
		return n, from, err
	}
}
