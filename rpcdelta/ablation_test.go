package rpcdelta_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// ablations are the parts of the adaptive codec that can be taken out.
var ablations = []struct {
	name string
	off  adaptive.Part
}{
	{"frequent values", adaptive.FrequentValues},
	{"counters that step", adaptive.Stepping},
	{"expert: one slope", adaptive.Slope},
	{"expert: five slopes", adaptive.Slopes},
	{"expert: scalars beside angles", adaptive.Driven},
	{"derivatives of numbers", adaptive.Derived},
	{"expert: mean and bend", adaptive.Bend},
	{"angular velocities", adaptive.Turned},
	{"experts: orientations turned on", adaptive.Extended},
	{"weights that adapt", adaptive.Weights},
	{"flags: the past", adaptive.PastFlags},
	{"flags: the last one", adaptive.LastFlag},
	{"flags: bits that changed", adaptive.Pressed},
	{"scale: the residual before", adaptive.Near},
	{"scale: the run of residuals", adaptive.Run},
	{"scale: the way of the prediction", adaptive.Way},
	{"scale between distances", adaptive.Scales},
	{"predictions between distances", adaptive.Between},
	{"three sets of tables", adaptive.Tables},
}

// recorded is a trace, and the age of baselines that a round trip of 100 ms leads to.
type recorded struct {
	file     string
	distance int
	unlinked bool // no field has a derivative
}

var recordings = []recorded{
	{"portal2_coop_60hz", 6, false},
	{"portal1_escape02_67hz", 7, false},
	{"portal1_netclient_67hz", 7, false},
	{"rocketleague_solo_30hz", 3, false},
	{"cubes_player_60hz", 6, false},
	{"rocketleague_solo_30hz", 3, true},
	{"cubes_player_60hz", 6, true},
}

// name is that of a column.
func (r *recorded) name() string {
	name, _, _ := strings.Cut(r.file, "_")
	if r.file == "portal1_netclient_67hz" {
		name = "netclient"
	}
	if r.unlinked {
		name += "'"
	}
	return name
}

// header is about what a frame takes beside its payload.
const header = 14

// least is what a part has to be worth: a part of all bits.
const least = 0.001

// TestAblation codes the traces without each part of the codec, at the age of their
// baselines and against the frame before, as frames that ride along are, and prints what that
// costs.
func TestAblation(t *testing.T) {
	n := len(recordings)
	rows := make([][]float64, len(ablations)+1) // bits, at each distance
	for i := range rows {
		rows[i] = make([]float64, 2*n)
	}
	var wg sync.WaitGroup
	for k := range recordings {
		wg.Go(func() {
			r := &recordings[k]
			s, frames := r.load(t)
			for i := range rows {
				off := adaptive.Part(0)
				if i > 0 {
					off = ablations[i-1].off
				}
				if r.unlinked {
					off |= adaptive.Derived | adaptive.Turned
				}
				rows[i][k] = header + codedBits(s, frames, r.distance, off)
				rows[i][n+k] = codedBits(s, frames, 1, off)
			}
		})
	}
	wg.Wait()
	var out strings.Builder
	fmt.Fprintf(&out, "%-32s", "")
	for k := range recordings {
		fmt.Fprintf(&out, " | %s", recordings[k].name())
	}
	fmt.Fprintf(&out, " | mean | distance 1 | change\n")
	for i, bits := range rows {
		name := "all parts"
		if i > 0 {
			name = ablations[i-1].name
		}
		fmt.Fprintf(&out, "%-32s", name)
		for k, b := range bits[:n] {
			fmt.Fprintf(&out, " | %*.1f", len(recordings[k].name()), b)
		}
		cost := geometric(bits)/geometric(rows[0]) - 1
		fmt.Fprintf(&out, " | %.2f | %10.2f | %+.2f %%\n", geometric(bits[:n]), geometric(bits[n:]), 100*cost)
		if i > 0 && cost < least && !brief() {
			t.Errorf("without %q the traces take %.2f %% more: it is not worth its place", name, 100*cost)
		}
	}
	t.Logf("bits a frame with a header of %d, at distance 1 without; ' has no derivatives\n%s", header, out.String())
}

// brief is true of tests that code a part of each trace, and judge nothing.
func brief() bool { return testing.Short() || rpcdelta.RaceEnabled }

// load loads a trace, or the beginning of it.
func (r *recorded) load(t *testing.T) (*schema.Schema, []schema.Frame) {
	path := "../testdata/traces/" + r.file + ".csv.gz"
	s, err := trace.LoadSchema(trace.SchemaPath(path))
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	tr, err := trace.Load(path, s)
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	if brief() {
		return s, tr.Frames[:100]
	}
	return s, tr.Frames
}

// geometric is a geometric mean.
func geometric(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(x)))
}

// codedBits is what a frame takes, on average, by a codec that lacks some parts: each against
// the one distance before it.
func codedBits(s *schema.Schema, frames []schema.Frame, distance int, off adaptive.Part) float64 {
	if s == nil {
		return 0
	}
	fields := rpcdelta.ModelFields(s)
	m := adaptive.Generic().CompileWithout(off, fields, s.RateHz())
	state, coder := m.NewState(0), new(adaptive.Coder)
	known := adaptive.NewFrames(s.Components(), len(frames[0].Bytes), adaptive.MaxRing+adaptive.LearnReach)
	var bits fieldBits
	for n := distance; n < len(frames); n++ {
		base := uint64(n - distance)
		known.Put(base, (*adaptive.Row)(&frames[base]))
		state.Learn(base, known)
		coder.Measure(&bits, 0, []*adaptive.Row{(*adaptive.Row)(&frames[n])}, uint64(n), base, true, state, known)
	}
	return float64(bits) / float64(len(frames)-distance)
}

// fieldBits adds up what fields take.
type fieldBits float64

func (*fieldBits) Row(int) {}

func (*fieldBits) Count(float64)                  {}
func (b *fieldBits) Flags(_ int, bits float64)    { *b += fieldBits(bits) }
func (b *fieldBits) Contents(_ int, bits float64) { *b += fieldBits(bits) }
func (b *fieldBits) Component(_, _ int, bits float64, _ adaptive.Predictor, _ int64) {
	*b += fieldBits(bits)
}
