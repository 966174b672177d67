package load

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/ds"
)

// Host is a running dedicated server.
type Host struct {
	*ds.Server
	stop   context.CancelFunc
	work   sync.WaitGroup
	served error
}

// Serve runs a server until [Host.Close], and calls tick hz times per second with ascending numbers
// from 1 on. If the process is too slow, ticks are dropped.
func Serve(s *ds.Server, hz int, tick func(n uint64)) *Host {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{Server: s, stop: cancel}
	h.work.Go(func() { h.served = s.Serve(context.Background()) })
	h.work.Go(func() {
		n := uint64(0)
		for range sleep.Every(ctx, time.Second/time.Duration(hz)) {
			n++
			tick(n)
		}
	})
	return h
}

// Close stops the server. If the server ended earlier because of an error, Close returns this
// error.
func (h *Host) Close() error {
	h.stop()
	err := h.Server.Close()
	h.work.Wait()
	return errors.Join(err, h.served)
}
