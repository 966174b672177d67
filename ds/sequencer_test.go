package ds

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

type recorder struct {
	delivered []rpcdelta.Delivery
	values    []int32
}

func (r *recorder) deliver(_ *Player, _ *binding, d *rpcdelta.Delivery, _ time.Time) error {
	r.delivered = append(r.delivered, *d)
	r.values = append(r.values, d.Frame.Ints[0])
	return nil
}

// TestSequencer verifies that frames which arrive in any order are delivered in sequence, each with
// its value and the number of frames that are missing before it; that none is delivered before a
// missing one that can still arrive in time; and that no more wait than the deadline permits.
func TestSequencer(t *testing.T) {
	s, err := schema.New("Sequence", 60, []schema.Field{{Name: "N", Kind: schema.KindUint, Width: 16}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		const deadline, frames = 5, 60
		feasible := rapid.Bool().Draw(t, "feasible")
		p := &Player{server: &Server{}, shard: &shard{}}
		b := new(binding)
		var got recorder
		q := &sequencer{
			sink: &got, player: p, binding: b, schema: s, deadline: deadline, patience: time.Second,
			repairs: func() bool { return feasible },
		}
		now := time.Unix(0, 0)
		frame := s.NewFrame()
		arrive := func(seq uint64, late bool) {
			frame.Ints[0] = int32(seq)
			err := q.deliver(p, b, &rpcdelta.Delivery{Info: rpcdelta.Info{Seq: seq}, Late: late, Frame: frame}, now)
			if err != nil && (seq >= q.next || feasible && len(got.delivered) == 0) {
				t.Fatalf("frame %d: %v", seq, err)
			}
			if len(q.waiting) > deadline+1 || len(p.shard.sequencing) > 1 {
				t.Fatalf("%d frames wait; %d are listed", len(q.waiting), len(p.shard.sequencing))
			}
		}
		arrive(0, false)
		var lost []uint64
		for seq := uint64(1); seq < frames; seq++ {
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				lost = append(lost, seq)
				continue
			case 1:
				if n := len(lost); n > 0 {
					arrive(lost[n-1], true)
					lost = lost[:n-1]
				}
			}
			arrive(seq, false)
			if n := len(got.delivered); feasible && len(lost) > 0 && n > 0 {
				oldest := lost[0]
				if last := got.delivered[n-1].Seq; oldest >= q.next && last > oldest {
					t.Fatalf("frame %d is delivered before %d", last, oldest)
				}
			}
		}
		q.expire(now.Add(time.Second))
		if len(q.waiting) != 0 || q.listed {
			t.Fatalf("%d frames still wait", len(q.waiting))
		}
		next := uint64(0)
		for i, d := range got.delivered {
			if d.Seq < next || d.Missed != d.Seq-next || d.Late || got.values[i] != int32(d.Seq) {
				t.Fatalf("frame %d with %d missed and value %d, want one from %d on", d.Seq, d.Missed, got.values[i], next)
			}
			next = d.Seq + 1
		}
	})
}
