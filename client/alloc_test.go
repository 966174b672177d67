package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// loopback binds Move over real sockets. Each frame that a handler got comes
// out of the channel.
func loopback(t testing.TB) (*ds.Server, *client.Stream[uplinktest.Move], <-chan uint64) {
	t.Helper()
	srv, _, stream, got := loopbackWith(t, client.Config{}, client.BindConfig{})
	return srv, stream, got
}

// loopbackWith is loopback with a config and options.
func loopbackWith(t testing.TB, cfg client.Config, bind client.BindConfig) (*ds.Server, *client.Conn, *client.Stream[uplinktest.Move], <-chan uint64) {
	t.Helper()
	cfg.Timeout = time.Minute // a busy machine may stand still for a while
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{RateSlack: ds.MaxRateSlack, Timeout: cfg.Timeout})
	uplinktest.Must(t, err)
	got, over := make(chan uint64, 1), make(chan struct{})
	uplinktest.Must(t, ds.Handle(srv, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
		select {
		case got <- f.Seq:
		case <-over: // the server, which waits for this, can close wherever the test ended
		}
	}))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background()) }()
	conn, err := client.Dial(t.Context(), srv.Addr().String(), cfg)
	uplinktest.Must(t, err)
	t.Cleanup(func() {
		close(over)
		uplinktest.Must(t, conn.Close())
		uplinktest.Must(t, srv.Close())
		uplinktest.Must(t, <-served)
	})
	return srv, conn, uplinktest.Bind(t, conn, "Move", bind), got
}

// moves are calls that follow one another, made beforehand.
func moves() *[600]uplinktest.Move {
	var m [600]uplinktest.Move
	for i := range m {
		m[i] = uplinktest.MoveAt(1, uint64(i))
	}
	return &m
}

// TestNoAllocations sends over real sockets until a handler has the frame.
func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	srv, stream, got := loopback(t)
	lost := time.NewTicker(time.Second)
	defer lost.Stop()
	calls := moves()
	next, missed := 0, 0
	send := func() {
		if err := stream.Send(&calls[next%len(calls)]); err != nil {
			t.Fatal(err)
		}
		next++
	}
	frame := func() {
		send()
		for {
			select {
			case seq := <-got:
				if seq == uint64(next-1) {
					return
				}
			case <-lost.C: // a datagram, as can happen over loopback too; or it comes yet
				send()
				missed++
			}
		}
	}
	for range 2000 {
		frame()
	}
	if n := testing.AllocsPerRun(2000, frame); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
	if n := int(srv.Stats().RPCs[0].Frames()); n > next || n < next-missed {
		t.Errorf("%d of %d frames came", n, next)
	}
}

// TestCoalescingAllocatesNothing sends frames in pairs, which share a datagram with
// those of another RPC.
func TestCoalescingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	pairs := client.BindConfig{SendEvery: 2, RateHz: 0.1} // so that no frame has waited for long enough when the other one comes, however busy the machine is
	_, conn, stream, got := loopbackWith(t, client.Config{Codec: rpcdelta.Adaptive, FlushOnly: true, Bandwidth: 1e9}, pairs)
	other := uplinktest.Bind(t, conn, "Move", pairs)
	calls := moves()
	next := 0
	tick := func() {
		for range 2 {
			for _, s := range []*client.Stream[uplinktest.Move]{stream, other} {
				if err := s.Send(&calls[next%len(calls)]); err != nil {
					t.Fatal(err)
				}
			}
			next++
		}
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			<-got
		}
	}
	for range 1000 {
		tick()
	}
	if n := testing.AllocsPerRun(1000, tick); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
	if st := other.Stats(); st.Coalesced < uint64(next/2)*9/10 || st.Messages > uint64(next/2) {
		t.Errorf("%+v", st)
	}
}

// BenchmarkSend is one call, with its system call.
func BenchmarkSend(b *testing.B) {
	_, stream, got := loopback(b)
	done := make(chan struct{})
	b.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case <-got:
			case <-done:
				return
			}
		}
	}()
	calls := moves()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := stream.Send(&calls[i%len(calls)]); err != nil {
			b.Fatal(err)
		}
	}
	reportBits(b, stream)
}

// BenchmarkSendAndReceive is one call until the handler has it.
func BenchmarkSendAndReceive(b *testing.B) {
	_, stream, got := loopback(b)
	lost := time.NewTicker(time.Second)
	defer lost.Stop()
	calls := moves()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := stream.Send(&calls[i%len(calls)]); err != nil {
			b.Fatal(err)
		}
		select {
		case <-got:
		case <-lost.C: // as can happen over loopback too
		}
	}
	reportBits(b, stream)
}

func reportBits(b *testing.B, s *client.Stream[uplinktest.Move]) {
	st := s.Stats()
	n := float64(st.Frames())
	b.ReportMetric(float64(st.FullBits)/n, "fullbits/frame")
	b.ReportMetric(float64(st.PayloadBits)/n, "payloadbits/frame")
	b.ReportMetric(float64(st.HeaderBits)/n, "headerbits/frame")
}
