package snapbench

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
)

// Group measures a world with areas, over a link without loss. One area contains all objects. Bytes
// counts whole messages. clock returns the time since some start.
func Group(form string, sets []*snapshot.Set, clock func() time.Duration) (*Row, error) {
	s := cubeset.Schema()
	world := areas.NewHistory()
	typ := world.AddType(s)
	dec := areas.NewDecoder(s)
	var view areas.View
	var builder areas.Builder
	view.See([]area.ID{1})
	r, bytes := &Row{Form: form}, 0
	var encode, decode []time.Duration
	acks := make([]snapshot.Ack, len(sets))
	for n, set := range sets {
		if at := n - Distance; at >= 0 {
			if _, err := view.Ack(acks[at]); err != nil {
				return nil, err
			}
		}
		start := clock()
		world.Begin()
		for i := range set.Len() {
			if err := world.Put(typ, set.Object(i), set.Row(i), 1); err != nil {
				return nil, err
			}
		}
		world.Commit()
		message := builder.Append(nil, world, &view, view.Receipts.Baseline(uint64(n)), areas.Limits{Enter: 1 << 20, Hold: Distance})
		encode = append(encode, clock()-start)
		start = clock()
		if _, _, err := dec.Decode(message); err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
		decode = append(decode, clock()-start)
		if !dec.Shown(0).Equal(set) {
			r.Wrong++
		}
		acks[n] = dec.Ack()
		if n >= Distance {
			r.Frames++
			r.Delivered++
			bytes += len(message)
		}
	}
	r.EncodeUs, r.DecodeUs = mean(encode), mean(decode)
	return r.finish(bytes), nil
}
