package client

import (
	"context"
	"testing"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/transport"
)

type benchMove struct {
	Location schema.Vec3    `uplink:"resolution=0.1"`
	Rotation schema.Rotator `uplink:"bits=16"`
	Throttle float32        `uplink:"resolution=0.01"`
	Buttons  uint16
}

// BenchmarkSendDelta is one call as the difference from one that was acked six
// frames before at most, with its system call: at the rate of a benchmark no
// server acks that often, so the acks are made here.
func BenchmarkSendDelta(b *testing.B) {
	l, err := transport.Listen("127.0.0.1:0", transport.Config{})
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = l.Serve(context.Background(), deaf{}) }()
	b.Cleanup(func() { _ = l.Close() })
	link, err := transport.Dial(b.Context(), l.Addr().String(), transport.Config{}, deaf{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = link.Close() })
	typ, err := schema.Compile[benchMove]("Move", 60)
	if err != nil {
		b.Fatal(err)
	}
	s, err := newStream(newTestConn(b), typ.Schema(), BindConfig{})
	if err != nil {
		b.Fatal(err)
	}
	s.link = link
	s.answered(&control.BindAnswer{RPC: uint8(s.number), Ring: 64, Prior: prior.Generic().Hash()})
	stream := &Stream[benchMove]{stream: s, typ: typ}
	var m benchMove
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		m.Location.X = float64(i%10_000) / 10
		m.Rotation.Yaw = float64(i) / 7
		m.Buttons = uint16(i / 100)
		if err := stream.Send(&m); err != nil {
			b.Fatal(err)
		}
		if i%6 == 5 {
			if err := s.ack(rpcdelta.Ack{Seq: uint16(i), Len: 5, Window: 1<<5 - 1}); err != nil {
				b.Fatal(err)
			}
		}
	}
	st := stream.Stats()
	n := float64(st.Frames())
	b.ReportMetric(float64(st.FullBits)/n, "fullbits/frame")
	b.ReportMetric(float64(st.PayloadBits)/n, "payloadbits/frame")
	b.ReportMetric(float64(st.HeaderBits)/n, "headerbits/frame")
	if b.N > 100 && st.Delta < st.Frames()*9/10 {
		b.Errorf("%d of %d frames are deltas", st.Delta, st.Frames())
	}
}
