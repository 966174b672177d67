package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// Play contains the calls of one RPC in one session of a capture.
type Play struct {
	Player uint64
	*trace.Trace
	seqs []uint64
}

// Plays reads the frames of a capture that the server received. It returns those of each session
// and RPC in order, the longest play first. Lost frames are omitted. The names of the traces begin
// with the name of the file. The memory is limited as for Run. After damage, it returns the plays
// before the damage, with the error.
func Plays(r io.Reader, name string) ([]Play, error) {
	type key struct {
		player uint64
		schema *schema.Schema
	}
	var all []*Play
	plays := map[key]*Play{}
	_, _, err := Run(r, Options{frame: func(x *inspection, player uint64, s *schema.Schema, d *rpcdelta.Delivery) {
		p := plays[key{player, s}]
		if p == nil {
			p = &Play{Player: player, Trace: &trace.Trace{Name: fmt.Sprintf("%s: %s of player %d", name, s.RPC(), player), Schema: s}}
			plays[key{player, s}] = p
			all = append(all, p)
		}
		x.limits.keep(frameSize + 4*s.Components() + sizeOf(d.Frame.Bytes))
		f := s.NewFrame()
		f.CopyFrom(d.Frame)
		p.Frames, p.seqs = append(p.Frames, *f), append(p.seqs, d.Seq)
	}})
	out := make([]Play, len(all))
	for i, p := range all {
		p.sort()
		out[i] = *p
	}
	slices.SortStableFunc(out, func(a, b Play) int { return cmp.Compare(len(b.Frames), len(a.Frames)) })
	return out, err
}

// frameSize is the size of a frame of a play without its components and bytes.
const frameSize = 96

func sizeOf(blobs [][]byte) (n int) {
	for _, b := range blobs {
		n += 24 + len(b)
	}
	return n
}

// sort moves frames that arrived late to their places.
func (p *Play) sort() {
	order := make([]int, len(p.seqs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.seqs[a], p.seqs[b]) })
	frames := make([]schema.Frame, len(order))
	for i, from := range order {
		frames[i] = p.Frames[from]
	}
	p.Frames, p.seqs = frames, nil
}
