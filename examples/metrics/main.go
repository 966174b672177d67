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

// ServerMove has the arguments of the RPC.
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
	conn, err := client.Dial(ctx, srv.Addr().String(), client.Config{})
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
	for i := range 60 {
		if _, err := move.Send(&ServerMove{Location: schema.Vec3{X: float64(i)}}); err != nil {
			return err
		}
		time.Sleep(time.Second / 60)
	}
	return show(web.URL, "uplink_client_frame", "uplink_ds_frames_total", "uplink_ds_players")
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
