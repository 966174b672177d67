package yardstick_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/internal/lab/yardstick"
	"github.com/uplink-rpc/uplink/transport"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
		goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"))
}

// open opens a UDP socket as the transport does.
func open(t testing.TB) transport.BatchConn {
	t.Helper()
	pc, err := transport.UDP().ListenPacket("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	return pc.(transport.BatchConn)
}

func TestServer(t *testing.T) {
	const count, answer = 100, 12
	pc, client := open(t), open(t)
	s := yardstick.New(pc, 16, answer)
	served := make(chan error)
	go func() { served <- s.Serve() }()
	in := yardstick.Batch(8)
	for range count {
		if _, err := client.WriteTo(make([]byte, 40), pc.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	for got := 0; got < count; {
		n, err := client.ReadBatch(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range in[:n] {
			if d.N != answer || d.Addr != pc.LocalAddr() {
				t.Fatalf("an answer of %d bytes from %v", d.N, d.Addr)
			}
		}
		got += n
	}
	if err := pc.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if r, sent, b := s.Received.Load(), s.Sent.Load(), s.Batches.Load(); r != count || sent != count || b < 1 || b > count {
		t.Errorf("%d received, %d sent, %d batches", r, sent, b)
	}
}

func TestProcessCPU(t *testing.T) {
	before, err := yardstick.ProcessCPU()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	for after := before; after == before; {
		if after, err = yardstick.ProcessCPU(); err != nil || after < before {
			t.Fatalf("%v after %v, %v", after, before, err)
		}
	}
}
