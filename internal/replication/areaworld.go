package replication

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// areaEncodings is the maximum number of baselines per tick in a world with areas. A group can have
// up to 8 encodings, for clients that have just begun to see it. With 4 baselines, clients would
// receive 3 % fewer bytes, and a tick for 1,000 clients would take 9 % longer.
const areaEncodings = 3

// areaWorld is the part of a World that only worlds with areas have.
type areaWorld struct {
	*areas.History
	types    []*areas.Type
	builders sync.Pool  // pool of *areas.Builder
	enter    int        // maximum bytes per message for keyframes of groups that enter a view
	tick     []areaTick // by object type
}

// areaTick contains the objects of one type in the newest tick, before the tick becomes a snapshot.
type areaTick struct {
	objects []snapshot.Object // objects by ascending id
	rows    []int32           // rows of all objects, one after the other
	in      []area.ID         // areas of all objects, one after the other
	count   []uint8           // number of areas of each object
}

// put adds an object.
func (t *areaTick) put(o snapshot.Object, row []int32, in []area.ID) error {
	if n := len(t.objects); n > 0 && o.ID <= t.objects[n-1].ID {
		return fmt.Errorf("object %d after object %d: want ascending ids", o.ID, t.objects[n-1].ID)
	}
	if len(in) > areas.MaxAreas {
		return fmt.Errorf("object %d is in %d areas, want at most %d", o.ID, len(in), areas.MaxAreas)
	}
	t.objects, t.rows = append(t.objects, o), append(t.rows, row...)
	t.in, t.count = append(t.in, in...), append(t.count, uint8(len(in)))
	return nil
}

// reset removes the objects of the newest tick.
func (w *areaWorld) reset() {
	for i := range w.tick {
		t := &w.tick[i]
		t.objects, t.rows, t.in, t.count = t.objects[:0], t.rows[:0], t.in[:0], t.count[:0]
	}
}

// apply turns the newest tick into a snapshot.
func (w *areaWorld) apply() {
	w.Begin()
	for i := range w.tick {
		t := &w.tick[i]
		rows, in, width := t.rows, t.in, 0
		if len(t.objects) > 0 {
			width = len(rows) / len(t.objects)
		}
		for k, o := range t.objects {
			n := int(t.count[k])
			if err := w.Put(w.types[i], o, rows[:width], in[:n]...); err != nil {
				panic(err) // areaTick.put and the quantizer have checked it
			}
			rows, in = rows[width:], in[n:]
		}
	}
	w.Commit()
}

// add adds a type of objects.
func (w *areaWorld) add(s *snapshot.Schema) {
	w.types, w.tick = append(w.types, w.AddType(s)), append(w.tick, areaTick{})
}

var (
	errNotBegun = errors.New("no tick has begun: call Begin first")
	errNoAreas  = errors.New("it is in areas: set WorldConfig.Areas")
)

// areaSender encodes the messages to one player of a world with areas.
type areaSender struct {
	world  *World
	player Player
	see    []area.ID // visible areas, by descending priority
	active bool
	view   areas.View
	sent   uint64 // number of the newest message, plus 1
	sentAt time.Time
	missed uint   // messages sent since the client's baselines became too old for the plan
	age    uint64 // number of ticks between the last snapshot and its baseline
	returns
}

func (s *areaSender) start(time.Time) { s.active = true }

func (s *areaSender) stop() {
	s.active, s.sent, s.age, s.missed = false, 0, 0, 0
	s.view.Reset()
}

func (s *areaSender) baselines(now time.Time) (c clientBaselines, ok bool) {
	r := &s.view.Receipts
	c.step = r.Step()
	c.full, c.bare = r.Baselines(s.world.begun-1, c.step)
	c.waits = now.Sub(s.sentAt) > maxWait
	return c, c.judge(s.player.RTT().Seconds()*s.world.rate, s.world.every()) && s.active
}

func (s *areaSender) message(own *[]byte, limit int, now time.Time) ([]byte, error) {
	w := s.world
	if w.begun == 0 || s.sent == w.begun {
		return nil, errNothing
	}
	c, recent := s.baselines(now)
	base, _ := w.plan.baseline(c)
	if (s.missed > 0 || s.view.Resends() > 0) && s.returned(s.player) {
		s.missed = 0
		s.view.Retry()
	}
	switch {
	case recent || base.Distance > 0:
		s.missed = 0
	case c.bare == 0: // the builder delays the keyframes of groups
	case now.Sub(s.sentAt) < min(minHold<<min(s.missed, 6), maxHold):
		return nil, errNothing
	default:
		s.missed++
	}
	b, _ := w.areas.builders.Get().(*areas.Builder)
	if b == nil {
		b = new(areas.Builder)
	}
	hold := max(minHold, s.player.RTT()*3/2).Seconds() * w.rate
	n := uint16(w.begun - 1)
	buf := w.ticks.Append((*own)[:0], n, base.Distance)
	buf = b.Append(buf, w.areas.History, &s.view, base, areas.Limits{Enter: w.areas.enter, Hold: int(hold) + 1})
	w.areas.builders.Put(b)
	*own = buf
	s.sent, s.sentAt, s.age = w.begun, now, w.ticks.age(n, base.Distance)
	if len(buf) > limit {
		return nil, fmt.Errorf("%w: snapshot %d takes %d bytes, want at most %d", snapshot.ErrTooLarge, n, len(buf), limit)
	}
	return buf, nil
}

func (s *areaSender) ack(b []byte, _ time.Time) (acked int, tick uint64, err error) {
	a, err := parseAck(b)
	if err != nil {
		return 0, 0, err
	}
	acked, err = s.view.Ack(a)
	return acked, s.world.newestAcked(&s.view.Receipts), err
}

func (s *areaSender) received(dst []uint64) []uint64 { return s.view.Receipts.Received(dst) }

func (s *areaSender) count(st *Stats) {
	c := &s.view.Counts
	st.BaselineAge, st.Objects, st.Waiting = s.age, c.Objects, c.Waiting
	st.Sharing += c.Sharing
}
