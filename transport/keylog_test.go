package transport_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/keylog"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestKeyLog verifies that both ends log the same secrets, which decrypt their datagrams.
func TestKeyLog(t *testing.T) {
	for _, suite := range []transport.Suite{transport.AES128GCM, transport.AES128CTRHMAC8, transport.None} {
		synctest.Test(t, func(t *testing.T) {
			network := uplinktest.NewNetwork(t, good, good)
			var ends [2]bytes.Buffer
			cfg := transport.Config{Network: network, Suites: []transport.Suite{suite}, Insecure: true}
			server, client := cfg, cfg
			server.KeyLog, client.KeyLog = &ends[0], &ends[1]
			type datagram struct {
				from, to netip.AddrPort
				b        []byte
			}
			var sent []datagram
			network.Watch(func(from, to netip.AddrPort, b []byte) {
				sent = append(sent, datagram{from, to, bytes.Clone(b)})
			})
			l := listen(t, serverAddr, server, &recorder{t: t})
			conn := dial(t, l.Addr(), client, &recorder{t: t})
			if err := conn.Send([]byte("a payload")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			network.Watch(nil)
			if !bytes.Equal(ends[0].Bytes(), ends[1].Bytes()) {
				t.Errorf("the ends say\n%s%s", &ends[0], &ends[1])
			}
			sessions, err := keylog.Parse(&ends[0])
			if err != nil || len(sessions) != 1 || sessions[0].ID != conn.ID() || sessions[0].Suite != suite {
				t.Fatalf("%+v, %v", sessions, err)
			}
			opener := keylog.NewOpener(sessions)
			var all []byte
			for _, d := range sent {
				out, v := opener.Open(nil, d.from, d.to, d.b)
				if v != keylog.Opened && v != keylog.Plain {
					t.Errorf("%x is not opened: verdict %d", d.b, v)
				}
				all = append(all, out...)
			}
			if !bytes.Contains(all, []byte("a payload")) {
				t.Errorf("no payload in %d datagrams", len(sent))
			}
		})
	}
}

// TestKeyLogIsOff verifies that no secret is written unless the configuration asks for it, whatever
// the environment contains.
func TestKeyLogIsOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.txt")
	t.Setenv("UPLINK_KEYLOG", path)
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		network := newNetwork(t, simnet.Config{})
		cfg := transport.Config{Network: network, Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		l := listen(t, serverAddr, cfg, &recorder{t: t})
		c := dial(t, l.Addr(), transport.Config{Network: network}, &recorder{t: t})
		time.Sleep(time.Second) // a listener that closes at once may not have heard that the connection is open
		synctest.Wait()
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if strings.Contains(logs.String(), "UPLINK_SESSION") || !strings.Contains(logs.String(), "connection") {
			t.Errorf("logged:\n%s", &logs)
		}
	})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", path, err)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestKeyLogFails verifies that a session continues if its key log fails.
func TestKeyLogFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		network := newNetwork(t, simnet.Config{})
		l := listen(t, serverAddr, transport.Config{Network: network}, &recorder{t: t})
		c := dial(t, l.Addr(), transport.Config{
			Network: network, KeyLog: full{}, Logger: slog.New(slog.NewTextHandler(&logs, nil)),
		}, &recorder{t: t})
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(logs.String(), `level=WARN msg="key log not written" error="no room"`) {
			t.Errorf("logged:\n%s", &logs)
		}
	})
}
