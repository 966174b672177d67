package demo

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/link"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The scheduler that kcp-go starts when it is imported.
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"),
		goleak.IgnoreAnyFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
	)
}

func options() Options {
	return Options{Link: link.Config{RTT: 2 * time.Millisecond, Burst: 1, Seed: 1}, Clients: 3, Codec: rpcdelta.RLE, For: 200 * time.Millisecond, Metrics: "127.0.0.1:0"}
}

// TestRun plays over a link that loses nothing.
func TestRun(t *testing.T) {
	var b strings.Builder
	if err := Run(t.Context(), &b, options()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" 100.0 % ", "\nDifferent from what was recorded: 0.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestVerdict plays something else than is expected.
func TestVerdict(t *testing.T) {
	all, err := traces()
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{traces: all}
	if err := d.verdict(io.Discard); err != nil {
		t.Error(err)
	}
	d.mismatches.Add(3)
	if err := d.verdict(io.Discard); err == nil || err.Error() != "3 frames differ from what was recorded" {
		t.Error(err)
	}
	broken := &demo{players: []*player{{}, {err: errors.New("broken")}}}
	broken.unchecked.Add(2)
	var b strings.Builder
	if err := broken.verdict(&b); err == nil || err.Error() != "broken" || !strings.Contains(b.String(), "not compared: 2.\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestMismatch has the clients' place in the recording be another one than they play from.
func TestMismatch(t *testing.T) {
	all, err := traces()
	if err != nil {
		t.Fatal(err)
	}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{options: options(), traces: all, srv: srv}
	for _, tr := range all {
		if err := ds.HandleSchema(srv, tr.Schema, d.check(tr)); err != nil {
			t.Fatal(err)
		}
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(t.Context()) }()
	if err := d.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, p := range d.players {
		p.offset += 7
		if i == 2 {
			d.offsets.Delete(p.conn.ID())
		}
	}
	err = d.play(t.Context(), io.Discard, served)
	if err == nil || !strings.HasSuffix(err.Error(), " frames differ from what was recorded") {
		t.Error(err)
	}
	if d.unchecked.Load() == 0 {
		t.Error("a client of which nobody knows where it began was compared")
	}
	if err := errors.Join(d.hangUp(), srv.Close(), <-served); err != nil {
		t.Error(err)
	}
}

func TestDeaf(t *testing.T) {
	o := options()
	o.Link.Loss = 2
	if err := Run(t.Context(), io.Discard, o); err == nil || err.Error() != "--loss 2: want a share of 0 to 1" {
		t.Error(err)
	}
}
