package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

func options() Options {
	return Options{Link: simlink.Config{RTT: 2 * time.Millisecond, Burst: 1, Seed: 1}, Clients: 3, Codec: rpcdelta.RLE, Suite: transport.AES128GCM, For: 200 * time.Millisecond, Metrics: "127.0.0.1:0"}
}

// prepare makes a demo that serves until the test ends, and has no clients yet.
func prepare(t *testing.T, o Options) (d *demo, served chan error) {
	t.Helper()
	d, err := newDemo(o)
	uplinktest.Must(t, err)
	uplinktest.Must(t, d.listen())
	served = make(chan error, 1)
	go func() {
		served <- d.srv.Serve(context.Background())
		close(served)
	}()
	t.Cleanup(func() {
		if err := errors.Join(d.srv.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return d, served
}

const allDelivered = " 100.0 % "

// shown contains a demo's output, up to the first table in which all frames were delivered.
type shown struct {
	text strings.Builder
	end  context.CancelFunc
}

func (s *shown) Write(b []byte) (int, error) {
	if strings.Contains(string(b), allDelivered) {
		s.end()
	}
	return s.text.Write(b)
}

// TestRun plays over a link that loses nothing, sealed in each way.
func TestRun(t *testing.T) {
	for suite, seal := range map[transport.Suite]int{transport.None: 0, transport.AES128CTRHMAC8: 64, transport.AES128GCM: 128} {
		t.Run(suite.String(), func(t *testing.T) {
			t.Parallel()
			o := options()
			o.Suite, o.For = suite, 2*time.Minute
			ctx, end := context.WithCancel(t.Context())
			b := shown{end: end}
			uplinktest.Must(t, Run(ctx, &b, o))
			for _, want := range []string{
				"; suite " + suite.String() + ".\n", allDelivered, fmt.Sprintf("\n24 of datagram, %d of AEAD and 224 of UDP and IP, ", seal),
				"\nDifferent from what was recorded: 0.\n",
			} {
				if !strings.Contains(b.text.String(), want) {
					t.Errorf("no %q in\n%s", want, &b.text)
				}
			}
		})
	}
}

func TestKeys(t *testing.T) {
	d, _ := prepare(t, options())
	if _, err := client.Dial(t.Context(), d.srv.Addr().String(), client.Config{}); !errors.Is(err, token.ErrWrongKey) {
		t.Errorf("without a token: %v", err)
	}
}

// TestVerdict plays something else than is expected.
func TestVerdict(t *testing.T) {
	d := &demo{}
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

// TestMismatch checks clients that play another recording than the demo compares with.
func TestMismatch(t *testing.T) {
	o := options()
	o.For = 0
	d, served := prepare(t, o)
	uplinktest.Must(t, d.connect(t.Context()))
	for i, p := range d.players {
		other := *p.trace
		other.Frames = append(other.Frames[7:len(other.Frames):len(other.Frames)], other.Frames[:7]...)
		p.trace = &other
		if i == 2 {
			p.session = p.conn.ID() // as if the client had connected again in the middle of a call
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	played := make(chan error, 1)
	go func() { played <- d.play(ctx, io.Discard, served) }()
	until(t, "frames differ, and those of a client of which nobody knows where it began are not compared", func() bool {
		return d.mismatches.Load() > 0 && d.unchecked.Load() > 0
	})
	stop()
	if err := <-played; err == nil || !strings.HasSuffix(err.Error(), " frames differ from what was recorded") {
		t.Error(err)
	}
	d.hangUp()
}
