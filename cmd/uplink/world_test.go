package main

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/playground"
	"github.com/uplink-rpc/uplink/transport"
)

// TestWorld plays in the demo world of ds: each way of sending reaches the client, and what it
// sends is answered.
func TestWorld(t *testing.T) {
	t.Parallel()
	_, addr := startDS(t, "--world")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	messages, streams, notices := make(chan string, 16), make(chan []byte, 1), make(chan playground.Notice, 1)
	var handlers client.Handlers
	must(t, client.Handle(&handlers, "Notice", func(c client.Call[playground.Notice]) {
		select {
		case notices <- c.Value:
		default:
		}
	}))
	conn, err := client.Dial(ctx, addr, client.Config{
		Handlers:  &handlers,
		OnMessage: func(b []byte) { messages <- string(b) },
		Hooks: client.Hooks{
			OnStream: func(s transport.StreamReader) {
				b, _ := io.ReadAll(s) // a part is not what the test wants
				streams <- b
			},
		},
	})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	view, err := client.SubscribeSnapshots(ctx, conn, playground.WorldName, client.SnapshotConfig[playground.Bot]{})
	must(t, err)
	if s := <-streams; bytes.Count(s, []byte("\n")) != playground.StreamLines {
		t.Errorf("a stream of %d bytes", len(s))
	}
	if m := <-messages; m[:7] != "welcome" {
		t.Errorf("message %q", m)
	}
	must(t, conn.SendReliable([]byte("ping")))
	if m := <-messages; m != "ping" {
		t.Errorf("answer %q", m)
	}
	answer, err := conn.Request(ctx, []byte("question"))
	if err != nil || string(answer) != "question" {
		t.Errorf("answer %q, %v", answer, err)
	}
	w, err := conn.OpenStream(ctx, "upload")
	must(t, err)
	_, err = w.Write(make([]byte, 10_000))
	must(t, err)
	must(t, w.Close())
	if m := <-messages; m != `stream "upload": 10000 bytes` {
		t.Errorf("message %q", m)
	}
	if n := <-notices; n.Tick == 0 || n.Players != 1 {
		t.Errorf("%+v", n)
	}
	var s client.Snapshot[playground.Bot]
	for !view.Latest(&s) || len(s.Objects) == 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("no objects: %v", view.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
