// Metrics: a dedicated server and a client in the game's Prometheus registry, served together with
// the game's other metrics.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/metrics"
	"github.com/uplink-rpc/uplink/schema"
)

// ServerMove contains the arguments of the RPC.
type ServerMove struct {
	Location schema.Vec3 `uplink:"resolution=0.1"`
	Buttons  uint16      `uplink:"kind=bits"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	if err != nil {
		return err
	}
	defer srv.Close()
	if err := ds.Handle(srv, "ServerMove", func(*ds.Player, ds.Frame[ServerMove]) {}); err != nil {
		return err
	}
	go srv.Serve(ctx)
	// Balanced as in a typical game, so that the metrics show calls that share datagrams.
	conn, err := client.Dial(ctx, srv.Addr().String(), client.Config{Preset: client.Balanced})
	if err != nil {
		return err
	}
	defer conn.Close()

	registry := prometheus.NewRegistry() // or the game's own
	registry.MustRegister(metrics.NewServer(srv), metrics.NewClient(conn))
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer web.Close()

	move, err := client.Bind[ServerMove](ctx, conn, "ServerMove", client.BindConfig{})
	if err != nil {
		return err
	}
	for i := range 120 {
		if _, err := move.Send(&ServerMove{Location: schema.Vec3{X: float64(i)}}); err != nil {
			return err
		}
		time.Sleep(time.Second / 60)
	}
	// The wire ratio divides the first three of the server's metrics;
	// deploy/prometheus/recording.yml has the rule. The last two are the health of the link: frames
	// that never arrived, and the age of baselines, about a round trip and half an ack interval
	// unless acks are lost.
	if err := show(web.URL, "uplink_ds_wire_bytes_total", "uplink_ds_ack_wire_bytes_total", "uplink_ds_full_wire_bytes_total",
		"uplink_ds_missed_frames_total", "uplink_ds_baseline_age_frames_sum"); err != nil {
		return err
	}
	st := srv.Stats()
	fmt.Printf("wire ratio %.2f\n", st.WireRatio(""))
	return nil
}

// show prints the lines of a metrics page that start with one of the prefixes.
func show(url string, names ...string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(page)) {
		for _, name := range names {
			if strings.HasPrefix(line, name) {
				fmt.Print(line)
			}
		}
	}
	return nil
}
