package natsstore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/natsstore"
	"github.com/uplink-rpc/uplink/token"
)

// record is a log for several goroutines.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) count(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), text)
}

// open returns a store with its log.
func open(t *testing.T, url string, options ...nats.Option) (*natsstore.Store, *record) {
	t.Helper()
	log := new(record)
	s, err := natsstore.New(url, natsstore.Config{Options: options, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, log
}

// fails waits until a store states a reason, in Check, in its log and as the error of a call.
func fails(t *testing.T, s *natsstore.Store, log *record, reason string) {
	t.Helper()
	eventually(t, "it fails: "+reason, func() bool { err := s.Check(); return err != nil && strings.Contains(err.Error(), reason) })
	if log.count("store fails") == 0 || log.count(reason) == 0 {
		t.Errorf("not in the log: %s", reason)
	}
	if _, err := s.Servers(t.Context()); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("the directory: %v, want %q", err, reason)
	}
}

// TestHeals starts a store before NATS, then kills NATS, starts it with its data, kills it again
// and starts it without its data. Each time the store says what is wrong, and works again by
// itself.
func TestHeals(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.kill(0)
	s, log := open(t, fmt.Sprintf("nats://127.0.0.1:%d", c.options[0].Port))
	ctx := t.Context()
	entry := fleet.Server{Name: "a", Addrs: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")}, MaxPlayers: 10}
	use := fleet.Use{Token: token.ID{1}, Expires: time.Now().Add(time.Minute)}
	for i, emptied := range []bool{false, false, true} {
		fails(t, s, log, "connection refused")
		if emptied {
			c.options[0].StoreDir = t.TempDir()
		}
		c.start(0)
		eventually(t, "it works", func() bool { return s.Check() == nil })
		if n := log.count("store works"); n != i+1 {
			t.Errorf("%d records that it works, want %d", n, i+1)
		}
		if err := s.Announce(ctx, entry); err != nil {
			t.Error(err)
		}
		if err := s.Use(ctx, use); err != nil {
			t.Error(err)
		}
		eventually(t, "the server is listed", func() bool { all, err := s.Servers(ctx); return err == nil && len(all) == 1 })
		ended := make(chan error)
		go func() { ended <- s.Replaced(ctx, "a", func(fleet.Session) {}) }()
		c.kill(0)
		if err := <-ended; err == nil {
			t.Error("the watch of replaced sessions ended without an error")
		}
	}
	if st := s.Stats(); st.Created != 8 || log.count("bucket created") != 8 {
		t.Errorf("%+v", st)
	}
}

// TestPasswordChanges connects with a wrong password until it is the right one.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.kill(0)
	c.options[0].Username, c.options[0].Password = "uplink", "right"
	c.start(0)
	var mu sync.Mutex
	password := "wrong"
	s, log := open(t, fmt.Sprintf("nats://127.0.0.1:%d", c.options[0].Port), nats.UserInfoHandler(func() (string, string) {
		mu.Lock()
		defer mu.Unlock()
		return "uplink", password
	}))
	fails(t, s, log, "Authorization Violation")
	mu.Lock()
	password = "right"
	mu.Unlock()
	eventually(t, "it works", func() bool { return s.Check() == nil })
}

// TestWithoutJetStream connects to a server without JetStream, and to one whose JetStream is too
// old for the expiry of keys, which a subscriber of its API plays.
func TestWithoutJetStream(t *testing.T) {
	t.Parallel()
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	s, log := open(t, n.ClientURL())
	fails(t, s, log, "JetStream does not answer")
	old, err := nats.Connect(n.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(old.Close)
	for subject, answer := range map[string]string{
		"$JS.API.INFO":          `{"type":"io.nats.jetstream.api.v1.account_info_response","api":{"total":1,"errors":0}}`,
		"$JS.API.STREAM.INFO.*": `{"type":"io.nats.jetstream.api.v1.stream_info_response","error":{"code":404,"err_code":10059,"description":"stream not found"}}`,
	} {
		if _, err := old.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer)) }); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, s, log, "has version "+server.VERSION+", want 2.11 or later")
}

// TestBucketDeleted deletes a bucket while all is connected: the store creates it again.
func TestBucketDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	s := c.store()
	nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", c.options[0].Port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if _, err := nc.RequestWithContext(context.Background(), "$JS.API.STREAM.DELETE.KV_uplink-servers", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is created", func() bool { return s.Stats().Created == 5 && s.Check() == nil })
	if err := s.Announce(t.Context(), fleet.Server{Name: "a"}); err != nil {
		t.Error(err)
	}
}
