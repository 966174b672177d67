package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/perplayer"
	"github.com/uplink-rpc/uplink/internal/lab/snapbench"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func zzSets(t *testing.T, file string) []*snapshot.Set {
	frames, err := cubes.Load(file)
	must(t, err)
	sets, err := snapbench.Sets(frames)
	must(t, err)
	return sets
}

var zzFiles = []string{"../testdata/traces/cubes_delta_data_2000.bin.gz", "/tmp/rec4242.bin.gz", "/tmp/rec77.bin.gz"}

func zzOld(t *testing.T, sets []*snapshot.Set, gap int) (float64, time.Duration) {
	s, err := perplayer.NewSchema(
		perplayer.Field{Name: "Orientation", Class: schema.ClassQuat, N: 4, Hi: cubes.MaxComponent},
		perplayer.Field{Name: "Position", Class: schema.ClassNumber, N: 3, Lo: -1 << 17, Hi: 1<<17 - 1},
		perplayer.Field{Name: "Interacting", Class: schema.ClassInteger, N: 1, Hi: 1},
	)
	must(t, err)
	w := perplayer.NewWorld(s, nil)
	e := perplayer.NewEncoder(s, w)
	sum, num := 0, 0
	var took time.Duration
	for n := range sets {
		set := w.Begin()
		for i := range sets[n].Len() {
			o := sets[n].Object(i)
			must(t, set.Add(perplayer.Object{ID: o.ID, Generation: o.Generation}, sets[n].Row(i)))
		}
		if n >= gap {
			must(t, e.Ack(perplayer.Ack{Newest: uint16(n - gap), Window: 1<<min(n-gap, 60) - 1}))
		}
		start := time.Now()
		out, _, err := e.Append(nil, 1<<20)
		took += time.Since(start)
		must(t, err)
		if n >= 60 {
			sum += len(out)
			num++
		}
	}
	return float64(sum) / float64(num), took / time.Duration(len(sets))
}

func zzNew(t *testing.T, sets []*snapshot.Set, gap int) (float64, time.Duration, time.Duration, any) {
	s := snapbench.Cubes()
	w := snapshot.NewWorld(s, nil)
	e, d := snapshot.NewEncoder(w), snapshot.NewDecoder(s, nil)
	sum, num := 0, 0
	var enc, dec time.Duration
	for n := range sets {
		start := time.Now()
		w.Begin().CopyFrom(sets[n])
		b := snapshot.Baseline{Empty: true}
		if n >= gap {
			b = snapshot.Baseline{Distance: gap, Bare: n < gap+6}
		}
		out, _, err := e.Append(nil, b, 1<<20)
		enc += time.Since(start)
		must(t, err)
		start = time.Now()
		_, got, err := d.Decode(out)
		dec += time.Since(start)
		must(t, err)
		if !got.Equal(sets[n]) {
			t.Fatal(n)
		}
		if n >= 60 {
			sum += len(out)
			num++
		}
	}
	return float64(sum) / float64(num), enc / time.Duration(len(sets)), dec / time.Duration(len(sets)), w.Physics()
}

func TestZZ(t *testing.T) {
	for _, gap := range []int{2, 6, 12} {
		var row strings.Builder
		for _, f := range zzFiles {
			sets := zzSets(t, f)
			base, took := zzOld(t, sets, gap)
			bytes, enc, dec, p := zzNew(t, sets, gap)
			fmt.Fprintf(&row, " %7.3f (%v: %v %v)", bytes/base, took, enc, dec)
			if gap == 6 {
				fmt.Println(p)
			}
		}
		fmt.Printf("gap %d %s\n", gap, row.String())
	}
}

func TestZZTrain(t *testing.T) {
	s := snapbench.Cubes()
	tr := snapshot.NewTrainer(s)
	r := rand.New(rand.NewPCG(1, 1))
	gaps := [][]int{{}, {1, 2}, {3, 4}, {5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15, 16}}
	for pass := range 2 {
		var worlds []*snapshot.World
		var recs [][]*snapshot.Set
		for i := 1; i <= 12; i++ {
			recs = append(recs, zzSets(t, fmt.Sprintf("/tmp/train%d.bin.gz", i)))
			worlds = append(worlds, snapshot.NewWorld(s, nil))
		}
		for n := range 1500 {
			for i, rec := range recs {
				worlds[i].Begin().CopyFrom(rec[n])
				if n < 60 {
					continue
				}
				for b := range gaps {
					bl := snapshot.Baseline{Distance: 1 + r.IntN(20), Bare: true}
					if b > 0 {
						bl = snapshot.Baseline{Distance: gaps[b][r.IntN(len(gaps[b]))]}
					}
					must(t, tr.Learn(worlds[i], bl))
				}
			}
		}
		if pass == 0 {
			tr.Settle()
		}
	}
	b := tr.Model().Append(nil, s)
	must(t, os.WriteFile("/tmp/cubes.prior", b, 0o644))
	fmt.Println(len(b))
}
