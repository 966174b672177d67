//go:build native

package session

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

var echo = flag.String("echo", "../../build/gcc/examples/uplink_echo", "client that checks calls of the server and sends streams back")

// call is the argument of the RPCs that the server calls.
type call struct {
	X float32 `uplink:"resolution=1"`
}

// The server calls two RPCs of the client and sends a byte stream, which comes back, over a link
// that loses and delays datagrams.
func TestServerCalls(t *testing.T) {
	const n = 150
	r, err := newRelay(*rtt/2, *loss, *seed)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	sent, back := make([]byte, 150_000), make(chan []byte, 1)
	for i := range sent {
		sent[i] = byte(i * 31 % 251)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	played := make(chan error, 1)
	s, err := ds.Listen("127.0.0.1:0", ds.Config{
		Addrs: []netip.AddrPort{r.addr()},
		Joined: func(p *ds.Player) {
			go func() { played <- callClient(ctx, p, n, sent) }()
		},
		Hooks: ds.Hooks{OnStream: func(_ *ds.Player, r transport.StreamReader) {
			b, _ := io.ReadAll(r)
			back <- b
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ctx) }()
	if err := r.start(s.Addr()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(*echo, r.addr().String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := <-played; err != nil {
		t.Error(err)
	}
	if got := <-back; !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, %d were sent", len(got), len(sent))
	}
	_ = s.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	var unreliable, reliable, wrong int
	if _, err := fmt.Sscanf(out.String(), "%d unreliable, %d reliable, %d wrong", &unreliable, &reliable, &wrong); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	t.Logf("%s; seed %d", bytes.TrimSpace(out.Bytes()), *seed)
	if reliable != n || unreliable < n*3/5 || unreliable > n || wrong > 0 {
		t.Errorf("want %d of each, all right", n)
	}
}

// callClient makes n calls of each RPC and sends a stream.
func callClient(ctx context.Context, p *ds.Player, n int, data []byte) error {
	hits, err := ds.Bind[call](p, "Hit", ds.BindConfig{})
	if err != nil {
		return err
	}
	notes, err := ds.Bind[call](p, "Note", ds.BindConfig{Reliable: true})
	if err != nil {
		return err
	}
	// The client knows both RPCs when its answers to the requests are there.
	time.Sleep(time.Second)
	for i := range n {
		v := call{X: float32(3 * i)}
		if _, err := hits.Send(&v); err != nil {
			return err
		}
		if _, err := notes.Send(&v); err != nil {
			return err
		}
		time.Sleep(time.Second / 60)
	}
	w, err := p.OpenStream(ctx, "echo")
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}
