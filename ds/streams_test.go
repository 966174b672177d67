package ds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// streamData returns n bytes that depend on the name of a stream.
func streamData(name string, n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32s", name))))
	_, _ = rng.Read(b)
	return b
}

// TestStreams sends streams of up to 300 KB both ways at the same time, over a link with 10 %
// packet loss, and reads them at different speeds. All arrive unchanged, and Close returns when
// they have been read.
func TestStreams(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Jitter: 10 * ms, Duplicate: 0.1, Seed: 31})
		sizes := []int{0, 1, 1146, 1147, 65536, 65537, 300_000}
		read := make(chan string, 100)
		receive := func(r transport.StreamReader) {
			var n int
			_, err := fmt.Sscanf(r.Name(), "%d", &n)
			uplinktest.Must(t, err)
			if n == 65537 {
				time.Sleep(2 * time.Second) // everything that has no credit waits
			}
			b, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(b, streamData(r.Name(), n)) {
				t.Errorf("stream %s: %d bytes, %v", r.Name(), len(b), err)
			}
			read <- r.Name()
		}
		var player *ds.Player
		srv := serve(t, network, ds.Config{
			Joined: func(p *ds.Player) { player = p },
			Hooks:  ds.Hooks{OnStream: func(_ *ds.Player, r transport.StreamReader) { receive(r) }},
		})
		conn := uplinktest.Dial(t, network, client.Config{Hooks: client.Hooks{OnStream: receive}})
		settle(time.Second)
		closed := make(chan string, 100)
		send := func(open func(context.Context, string) (transport.StreamWriter, error), end string, n int) {
			name := fmt.Sprintf("%d %s", n, end)
			w, err := open(t.Context(), name)
			uplinktest.Must(t, err)
			b := streamData(name, n)
			written, err := w.Write(b[:n/3])
			uplinktest.Must(t, err)
			more, err := w.Write(b[n/3:])
			uplinktest.Must(t, errors.Join(err, w.Close()))
			if written+more != n {
				t.Errorf("stream %s: %d bytes written", name, written+more)
			}
			closed <- name
		}
		for _, n := range sizes {
			go send(conn.OpenStream, "up", n)
			go send(player.OpenStream, "down", n)
		}
		for range 2 * len(sizes) {
			t.Logf("%s was read, %s closed", <-read, <-closed)
		}
		total := uint64(0)
		for _, n := range sizes {
			total += uint64(n)
		}
		if st, own := srv.Stats(), conn.Stats(); st.StreamBytesReceived != total || st.StreamBytesSent != total || own.StreamBytesSent != total || own.StreamBytesReceived != total {
			t.Errorf("counts %d %d %d %d, want %d", st.StreamBytesReceived, st.StreamBytesSent, own.StreamBytesSent, own.StreamBytesReceived, total)
		}
	})
}

// TestStreamEnds verifies how streams end that are not read to their end, at both ends, and the
// limits of OpenStream.
func TestStreamEnds(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Seed: 41})
		ends := make(chan error, 100) // with which the game's reads ended
		var player *ds.Player
		serve(t, network, ds.Config{
			Joined: func(p *ds.Player) { player = p },
			Hooks: ds.Hooks{
				OnStream: func(p *ds.Player, r transport.StreamReader) {
					switch r.Name() {
					case "ignored":
					case "kicks":
						p.Kick("enough")
						fallthrough
					default:
						_, err := io.ReadAll(r)
						ends <- err
					case "panics":
						panic("in OnStream")
					}
				},
				PanicHandler: func(*ds.Player, any, []byte) {},
			},
		})
		dial := func() *client.Conn {
			conn := uplinktest.Dial(t, network, client.Config{NoReconnect: true})
			settle(time.Second)
			return conn
		}
		conn := dial()
		open := func(ctx context.Context, name string) transport.StreamWriter {
			w, err := conn.OpenStream(ctx, name)
			uplinktest.Must(t, err)
			return w
		}
		fill := func(w transport.StreamWriter, n int) error {
			_, err := w.Write(make([]byte, n))
			return errors.Join(err, w.Close())
		}
		want := func(what string, err, cause error) {
			t.Helper()
			if !errors.Is(err, cause) {
				t.Errorf("%s: %v, want %v", what, err, cause)
			}
		}
		want("a callback that returns", fill(open(t.Context(), "ignored"), 1<<20), transport.ErrStreamAborted)

		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*ms, io.ErrShortWrite)
		defer cancel()
		want("a context", fill(open(ctx, "too late"), 1<<20), io.ErrShortWrite)
		want("a context, for the reader", <-ends, transport.ErrStreamAborted)

		w := open(t.Context(), "aborted")
		_, err := w.Write(make([]byte, 1000))
		uplinktest.Must(t, err)
		w.Abort("no time")
		want("a write after Abort", fill(w, 1), transport.ErrStreamAborted)
		err = <-ends
		want("Abort, for the reader", err, transport.ErrStreamAborted)
		wantErrors(t, "", map[string]error{"no time": err})

		w = open(t.Context(), "complete")
		uplinktest.Must(t, w.Close())
		w.Abort("too late")
		_, err = w.Write([]byte{1})
		if err == nil || <-ends != nil {
			t.Error("a write after Close")
		}

		w, err = player.OpenStream(t.Context(), "nobody reads")
		uplinktest.Must(t, err)
		want("no OnStream", w.Close(), transport.ErrUnhandled)

		_, long := conn.OpenStream(t.Context(), string(make([]byte, 129)))
		_, empty := player.OpenStream(t.Context(), "")
		wantErrors(t, "", map[string]error{"129 bytes": long, "0 bytes": empty})
		time.Sleep(3 * time.Second)
		for range 8 {
			open(t.Context(), "waits")
		}
		_, err = conn.OpenStream(t.Context(), "one more")
		want("a ninth stream", err, transport.ErrBacklog)
		wantErrors(t, "client: ", map[string]error{"8 streams": err})

		settle(time.Second)
		player.Kick("enough")
		settle(time.Second)
		for range 8 {
			want("the end of the session, for the reader", <-ends, transport.ErrKicked)
		}
		_, err = player.OpenStream(t.Context(), "x")
		want("a player who has left", err, transport.ErrKicked)
		_, err = conn.OpenStream(t.Context(), "x")
		want("a client that has left", err, transport.ErrKicked)

		conn = dial()
		want("the end of the session", fill(open(t.Context(), "kicks"), 1<<20), transport.ErrKicked)
		want("the end of the session, for the reader", <-ends, transport.ErrKicked)
		conn = dial()
		want("a panic", fill(open(t.Context(), "panics"), 1<<20), transport.ErrKicked)
	})
}

// TestStreamViolations verifies that server and client end the session of a peer that ignores what
// it may send, or that sends what no stream has. TestViolations has all of the messages.
func TestStreamViolations(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := perfect(t)
		stop := make(chan struct{})
		defer close(stop)
		var left error
		srv := serve(t, network, ds.Config{
			Hooks: ds.Hooks{OnStream: func(*ds.Player, transport.StreamReader) { <-stop }},
			Left:  func(_ *ds.Player, err error) { left = err },
		})
		r := dialRaw(t, network)
		next := []byte{0, 'x'} // opens stream 0
		sent := 0
		r.SetBulk(1<<20, func(b []byte, _ int) []byte {
			b = append(b, next...)
			next = append([]byte{1 << 3}, make([]byte, 1000)...)
			sent += 1000
			return b
		}, func([]byte, time.Time) {})
		r.WakeBulk()
		settle(5 * time.Second)
		if !errors.Is(left, transport.ErrProtocol) || !errors.Is(r.closed, transport.ErrProtocol) || sent < 65000 {
			t.Errorf("after %d bytes, the session ended with %v, at the client %v", sent, left, r.closed)
		}
		if n := srv.Stats().StreamBytesReceived; n > 64<<10 {
			t.Errorf("%d bytes were accepted", n)
		}
	})
}

// TestShutdownWaits verifies that Shutdown waits for the answers to requests, and for the end of
// streams in both directions.
func TestShutdownWaits(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const size = 500_000
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.1, Seed: 51})
		var read atomic.Int64 // by both ends
		receive := func(r transport.StreamReader) {
			b, err := io.ReadAll(r)
			uplinktest.Must(t, err)
			read.Add(int64(len(b)))
		}
		var player *ds.Player
		srv := serve(t, network, ds.Config{
			Joined: func(p *ds.Player) { player = p },
			Hooks:  ds.Hooks{OnStream: func(_ *ds.Player, r transport.StreamReader) { receive(r) }, OnRequest: func(r *ds.Request) { time.AfterFunc(time.Second, func() { uplinktest.Must(t, r.Reply(nil)) }) }},
		})
		conn := uplinktest.Dial(t, network, client.Config{Hooks: client.Hooks{OnStream: receive}})
		settle(time.Second)
		results := make(chan error, 3)
		go func() {
			_, err := conn.Request(t.Context(), nil)
			results <- err
		}()
		for _, open := range []func(context.Context, string) (transport.StreamWriter, error){conn.OpenStream, player.OpenStream} {
			w, err := open(t.Context(), "x")
			uplinktest.Must(t, err)
			go func() {
				_, err := w.Write(make([]byte, size))
				results <- errors.Join(err, w.Close())
			}()
		}
		settle(100 * ms)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		uplinktest.Must(t, srv.Shutdown(ctx))
		uplinktest.Must(t, errors.Join(<-results, <-results, <-results))
		if settle(time.Second); read.Load() != 2*size {
			t.Errorf("%d bytes were read, want %d", read.Load(), 2*size)
		}
	})
}

// delays are the delays of messages that contain the time when they were sent.
type delays struct {
	start time.Time
	all   []time.Duration
}

// stamp returns a message of 100 bytes.
func (d *delays) stamp() []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 92), uint64(time.Since(d.start)))
}

func (d *delays) take(b []byte) {
	d.all = append(d.all, time.Since(d.start)-time.Duration(binary.LittleEndian.Uint64(b[92:])))
}

func (d *delays) quantile(q float64) time.Duration {
	slices.Sort(d.all)
	return d.all[int(q*float64(len(d.all)-1))].Round(ms)
}

func (d *delays) String() string {
	return fmt.Sprintf("50 %% %v, 90 %% %v, 99 %% %v, all %v", d.quantile(0.5), d.quantile(0.9), d.quantile(0.99), d.quantile(1))
}

// TestStreamsBesideMessages measures the delays of messages of 100 bytes, reliable and unreliable
// ones at 60 Hz, while streams of 1 MB are sent in the same direction, and without them.
// docs/guide.md has the results.
func TestStreamsBesideMessages(t *testing.T) {
	measures(t)
	type result struct {
		reliable, unreliable delays
		lost                 int           // unreliable messages
		stream               time.Duration // for 1 MB
	}
	measure := func(t *testing.T, link simnet.Config, up, streaming bool) (res result) {
		network := linkedBy(t, 100*ms, link)
		res.reliable.start, res.unreliable.start = time.Now(), time.Now()
		var player *ds.Player
		read := func(r transport.StreamReader) { _, _ = io.Copy(io.Discard, r) }
		serve(t, network, ds.Config{
			Joined:    func(p *ds.Player) { player = p },
			OnMessage: func(_ *ds.Player, b []byte) { res.reliable.take(b) },
			Hooks:     ds.Hooks{OnUnreliable: func(_ *ds.Player, b []byte) { res.unreliable.take(b) }, OnStream: func(_ *ds.Player, r transport.StreamReader) { read(r) }},
		})
		conn := uplinktest.Dial(t, network, client.Config{OnMessage: res.reliable.take, Hooks: client.Hooks{OnUnreliable: res.unreliable.take, OnStream: read}})
		settle(2 * time.Second)
		open, reliable, unreliable := conn.OpenStream, conn.SendReliable, conn.SendUnreliable
		if !up {
			open, reliable, unreliable = player.OpenStream, player.SendReliable, player.SendUnreliable
		}
		end, streams, sent := make(chan struct{}), make(chan time.Duration), 0
		go func() {
			const size = 1 << 20
			start, done := time.Now(), 0
			for ; streaming; done++ {
				w, err := open(t.Context(), "measured")
				uplinktest.Must(t, err)
				_, err = w.Write(make([]byte, size))
				uplinktest.Must(t, err)
				uplinktest.Must(t, w.Close())
				select {
				case <-end:
					streaming = false
				default:
				}
			}
			streams <- time.Since(start) / time.Duration(max(done, 1))
		}()
		for stop := time.Now().Add(20 * time.Second); time.Now().Before(stop); time.Sleep(time.Second / 60) {
			uplinktest.Must(t, reliable(res.reliable.stamp()))
			uplinktest.Must(t, unreliable(res.unreliable.stamp()))
			sent++
		}
		close(end)
		res.stream = <-streams
		settle(2 * time.Second)
		res.lost = sent - len(res.unreliable.all)
		if len(res.reliable.all) != sent {
			t.Errorf("%d of %d reliable messages arrived", len(res.reliable.all), sent)
		}
		return res
	}
	for _, link := range []simnet.Config{{Loss: 0.05, Seed: 3}, {Loss: 0.05, Jitter: 20 * ms, Seed: 3}, {Rate: 125_000, Seed: 3}} {
		for _, up := range []bool{true, false} {
			bubble(t, fmt.Sprintf("loss=%v/bytes_per_second=%d/up=%t", link.Loss, link.Rate, up), func(t *testing.T) {
				without, with := measure(t, link, up, false), measure(t, link, up, true)
				t.Logf("reliable without streams: %v", &without.reliable)
				t.Logf("reliable beside streams:  %v", &with.reliable)
				t.Logf("unreliable without streams: %v, %d lost", &without.unreliable, without.lost)
				t.Logf("unreliable beside streams:  %v, %d lost", &with.unreliable, with.lost)
				t.Logf("1 MiB took %v", with.stream.Round(10*ms))
				for _, d := range [][2]*delays{{&without.reliable, &with.reliable}, {&without.unreliable, &with.unreliable}} {
					// The limit is four times the mean that the bulk channel aims at.
					if more := d[1].quantile(0.9) - d[0].quantile(0.9); more > 4*20*ms {
						t.Errorf("streams delay messages by %v at the 90 %% quantile", more)
					}
				}
				dropped := link.Loss * 20 * 60 // by the link, on average
				if float64(with.lost) > dropped+5*math.Sqrt(dropped)+20 || with.stream > 20*time.Second {
					t.Errorf("%d messages were lost, without streams %d; 1 MiB took %v", with.lost, without.lost, with.stream)
				}
			})
		}
	}
}
