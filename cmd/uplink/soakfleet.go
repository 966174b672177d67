package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/fleetload"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/fleet/httpstore"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/web"
)

const (
	fleetFlag = "fleet"
	// Defaults of --players and --for with --fleet.
	fleetPlayers = 200
	fleetFor     = time.Minute
)

// setFleet copies the flags that apply to --fleet too.
func (o *soakOptions) setFleet(set func(flag string) bool) {
	o.fleet.Players, o.fleet.For = fleetPlayers, fleetFor
	if set("players") {
		o.fleet.Players = o.Players
	}
	if set("for") {
		o.fleet.For = o.For
	}
}

// runFleet plays on servers in processes of their own, with a store over HTTP, over UDP behind a
// simulated link.
func runFleet(cmd *cobra.Command, o *soakOptions) error {
	link := simlink.Config{RTT: 100 * time.Millisecond, Loss: 0.05, Burst: 1, Seed: o.seed}
	network, err := link.Network()
	if err != nil {
		return err
	}
	store := fleet.NewMemory()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	server := web.NewServer(httpstore.Handler(store, ""))
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // until Close
	defer func() {
		cancel()
		_ = server.Close()
		serving.Wait()
	}()
	url := fmt.Sprintf("http://%s/", listener.Addr())
	start := func(name string) (fleetload.Node, error) { return fleetload.StartProcess(name, url, 2*o.fleet.Players) }
	status := func(elapsed time.Duration) string { return fmt.Sprintf("%v", elapsed) }
	return o.during(cmd, status, func(show func(any)) error {
		result, err := fleetload.Run(cmd.Context(), o.fleet, store, network, start, func(line string) {
			if !o.json {
				show(line)
			}
		})
		if err != nil {
			return err
		}
		if o.json {
			show(result)
		}
		return result.Verdict()
	})
}

// newSoakFleetServerCommand returns the hidden command that soak --fleet starts.
func newSoakFleetServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: fleetload.Command, Hidden: true, Args: cobra.NoArgs,
		Short: "A server of soak --fleet",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fleetload.Answer(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
