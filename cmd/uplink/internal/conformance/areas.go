package conformance

import (
	"context"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// cells is the number of areas of a world.
const cells = 6

// town is a world with areas, through which objects of several types move.
type town struct {
	t       *tester
	world   *areas.History
	objects []*objects // by type
	types   []*areas.Type
	in      map[*object][]area.ID
}

func (t *tester) town(types int) (*town, error) {
	w := &town{t: t, world: areas.NewHistory(), in: map[*object][]area.ID{}}
	for n := range types {
		o, err := t.objects(n)
		if err != nil {
			return nil, err
		}
		w.objects = append(w.objects, o)
		w.types = append(w.types, w.world.AddType(o.schema))
	}
	return w, nil
}

// step makes the next snapshot. Sometimes an object moves to up to two other areas.
func (w *town) step() error {
	w.world.Begin()
	defer w.world.Commit()
	for n, o := range w.objects {
		o.step()
		for id := range uint16(40) {
			b := o.rows[id]
			if b == nil {
				continue
			}
			if in, ok := w.in[b]; !ok || len(in) == 0 || w.t.rng.IntN(50) == 0 {
				w.in[b] = w.pick(1 + w.t.rng.IntN(2))
			}
			if err := w.world.Put(w.types[n], b.Object, b.row, w.in[b]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// pick returns n areas, ascending.
func (w *town) pick(n int) (out []area.ID) {
	for _, i := range w.t.rng.Perm(cells)[:n] {
		out = append(out, area.ID(i+1))
	}
	return out
}

func testAreas(ctx context.Context, t *tester) error {
	return t.each(ctx, "world", func(int) error {
		types := 1 + t.rng.IntN(3)
		w, err := t.town(types)
		if err != nil {
			return err
		}
		h, schemas := t.handle(), []*snapshot.Schema(nil)
		request := []string{"areas", h}
		for _, o := range w.objects {
			described, err := t.describe(o)
			if err != nil {
				return err
			}
			request, schemas = append(request, described), append(schemas, o.schema)
		}
		if _, err := t.must(request...); err != nil {
			return err
		}
		decoder := areas.NewDecoder(schemas...)
		var builder areas.Builder
		var view areas.View
		view.See(w.pick(3))
		return t.play(h, &downlink{
			append: func() ([]byte, error) {
				if err := w.step(); err != nil {
					return nil, err
				}
				if t.rng.IntN(20) == 0 {
					view.See(w.pick(1 + t.rng.IntN(cells)))
				}
				return builder.Append(nil, w.world, &view, view.Receipts.Baseline(w.world.Next()-1), areas.Limits{Enter: 400, Hold: 8}), nil
			},
			decode: func(b []byte) (string, error) {
				number, distance, err := decoder.Decode(b)
				if err != nil {
					return "", err
				}
				return protocol.View(number, distance, decoder, types), nil
			},
			acks: func() []byte {
				a := decoder.Ack()
				return a.Append(nil)
			},
			ack: func(b []byte) error {
				a, _, err := snapshot.ParseAck(b)
				if err == nil {
					_, err = view.Ack(a)
				}
				return err
			},
		})
	})
}
