package client

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
)

// TestSkippedTypes checks that a client plays on without the objects of a type that it does not
// have, and logs the type once, whatever the number of offers.
func TestSkippedTypes(t *testing.T) {
	r := newWorldFixture(t, areaCodec)
	var log bytes.Buffer
	r.conn.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	v, err := SubscribeSnapshots(t.Context(), r.conn, "worldObjects", SnapshotConfig[worldObject]{AckHz: 1000})
	must(t, err)
	r.subscribed()
	var latest Snapshot[worldObject]
	for range 200 {
		r.deliver(r.send())
		r.ack()
		if !v.Latest(&latest) || latest.Tick != r.tick || len(latest.Objects) != worldObjects {
			t.Fatalf("tick %d: the latest is tick %d with %d objects", r.tick, latest.Tick, len(latest.Objects))
		}
	}
	if got := v.SkippedTypes(); !slices.Equal(got, []string{"goals"}) {
		t.Errorf("skipped types are %q", got)
	}
	_, body, err := message.Split(r.offer)
	must(t, err)
	offer, err := replication.ParseOffer(body)
	must(t, err)
	d, err := v.all.NewReceiver().Check(&offer)
	must(t, err)
	if !slices.Equal(d.Asking, []string{"goals/"}) || d.Answering != nil {
		t.Errorf("differences are %+v", d)
	}
	r.conn.worldReport("worldObjects", d, nil)
	r.conn.noteMismatches()
	if n := strings.Count(log.String(), "goals/"); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
	if n := r.conn.Stats().Mismatches; n != 1 {
		t.Errorf("%d mismatches, want 1", n)
	}
}
