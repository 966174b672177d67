package demo

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/lab"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// introduced receives the introduction.
type introduced chan string

func (c introduced) Write(b []byte) (int, error) {
	select {
	case c <- string(b):
	default:
	}
	return len(b), nil
}

// playing is a demo that plays until its test is over, and then has compared every frame. url is that
// of the dashboard.
func playing(t *testing.T, o Options) (d *demo, url string) {
	t.Helper()
	d, served := prepare(t, o)
	uplinktest.Must(t, d.connect(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	played, text := make(chan error, 1), make(introduced, 1)
	go func() { played <- d.play(ctx, text, served) }()
	t.Cleanup(func() {
		stop()
		if err := <-played; err != nil {
			t.Error(err)
		}
		if n := d.unchecked.Load(); n != 0 {
			t.Errorf("%d frames were not compared", n)
		}
		d.hangUp()
	})
	return d, regexp.MustCompile(`Dashboard: (\S+)`).FindStringSubmatch(<-text)[1]
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: never", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestCodecs changes the codec over a bad link: all play on, and what was counted is kept.
func TestCodecs(t *testing.T) {
	o := options()
	o.Clients, o.For = 4, 0
	o.Link.Loss, o.Link.RTT, o.Link.Jitter = 0.2, 20*time.Millisecond, 3*time.Millisecond
	d, _ := playing(t, o)
	s := d.Settings()
	s.Redundancy = 3
	for _, s.Codec = range []rpcdelta.Codec{rpcdelta.Adaptive, rpcdelta.RLE, rpcdelta.Adaptive} {
		before := d.observe().total()
		uplinktest.Must(t, d.Change(s))
		until(t, "all clients have the codec", func() bool { return d.Traffic().Switched == o.Clients })
		until(t, "they play on", func() bool {
			now := d.observe().total()
			return now.Sent.Frames() > before.Sent.Frames()+100 && now.Delivered > before.Delivered+50
		})
		now := d.observe().total()
		if combines := s.Codec == rpcdelta.Adaptive; (now.redundancy == 3) != combines {
			t.Errorf("%v: redundancy %d", s.Codec, now.redundancy)
		}
		if now.Bytes <= before.Bytes || now.Messages <= before.Messages || now.AEADBytes <= before.AEADBytes {
			t.Errorf("%v: %+v, before %+v", s.Codec, now, before)
		}
	}
	until(t, "the old connections are closed", func() bool { return d.srv.Stats().Transport.Open == o.Clients })
	// Those that are closed are still counted.
	if n := testutil.CollectAndCount(d.collector, "uplink_client_frames_total"); n == 0 {
		t.Error("no frames in the metrics")
	}
}

// TestLinkChanges: a change acts on what is sent from then on.
func TestLinkChanges(t *testing.T) {
	o := options()
	o.For = 0
	d, _ := playing(t, o)
	change := func(f func(*lab.Settings)) {
		t.Helper()
		s := d.Settings()
		f(&s)
		uplinktest.Must(t, d.Change(s))
		if got := d.Settings(); got != s {
			t.Errorf("%+v, want %+v", got, s)
		}
	}
	change(func(s *lab.Settings) { s.Redundancy, s.Link.Loss = rpcdelta.RedundancyOff, 0.6 })
	until(t, "frames are lost", func() bool { return d.Traffic().Delivered < 0.6 })
	change(func(s *lab.Settings) { s.Link.Loss = 0 })
	until(t, "none is", func() bool { return d.Traffic().Delivered == 1 })
	change(func(s *lab.Settings) { s.Link.RTT = 300 * time.Millisecond })
	until(t, "the round trip is longer", func() bool { return d.Traffic().RTT > 200 })
	before := d.Settings()
	bad := before
	bad.Link.Loss = 2
	if err := d.Change(bad); err == nil || d.Settings() != before {
		t.Errorf("a loss of 2: %v, %+v", err, d.Settings())
	}
}
