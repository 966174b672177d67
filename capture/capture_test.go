package capture

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/transport"
)

func TestDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	w, err := Create(filepath.Join(t.TempDir(), "out.uplink"), Config{})
	uplinktest.Must(t, err)
	move, err := schema.New("A", 60, []schema.Field{{Name: "X", Kind: schema.KindVec3, Resolution: 1}})
	uplinktest.Must(t, err)
	var p ds.PlayerTap = &player{w.w.Open(record.Opened{})}
	frames := []rpcdelta.Delivery{{Info: rpcdelta.Info{Kind: rpcdelta.Delta}, Frame: move.NewFrame()}}
	now, body := time.Now(), make([]byte, 30)
	if n := allocs.PerRun(1000, func() {
		p.Carried(transport.TapEvent{At: now, Number: 7, Size: 49, Body: body})
		p.Decoded(now, 0, frames)
		p.Carried(transport.TapEvent{At: now, Sent: true, Number: 7, Size: 49, Body: body})
		p.Carried(transport.TapEvent{At: now, Reliable: true, Body: body})
		p.Dropped(now, 0, ds.Late, true)
		p.Withheld(now, 0, 9, ds.RateLimited)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := w.Close(); err != nil || w.Stats().Lost != 0 {
		t.Errorf("%v, %+v", err, w.Stats())
	}
}
