package inspect

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// trained is a prior that is not the built-in one.
func trained(t *testing.T) *prior.Prior {
	t.Helper()
	typ, err := schema.Compile[uplinktest.Move]("A", 0)
	uplinktest.Must(t, err)
	r := prior.Recording{Schema: typ.Schema()}
	for n := range uint64(300) {
		m, f := uplinktest.MoveAt(9, n), typ.Schema().NewFrame()
		uplinktest.Must(t, typ.Quantize(f, &m))
		r.Frames = append(r.Frames, *f)
	}
	p, err := prior.Train(t.Context(), []prior.Recording{r}, prior.TrainConfig{})
	uplinktest.Must(t, err)
	return p
}

// rewrite returns a copy of a capture in which change replaces each record, or drops it by
// returning nil.
func rewrite(t *testing.T, data []byte, change func(record.Body) record.Body) []byte {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(data))
	uplinktest.Must(t, err)
	out := capture.AppendHeader(nil)
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		uplinktest.Must(t, err)
		if b := change(rec.Body); b != nil {
			out = capture.AppendRecord(out, 0, b)
		}
	}
}

// lose drops some records within a capture, as a writer does that cannot keep up.
func lose(t *testing.T, data []byte, rng *rand.Rand) []byte {
	t.Helper()
	n, from, lost := 0, 100+rng.IntN(200), 1+rng.IntN(10)
	return rewrite(t, data, func(b record.Body) record.Body {
		switch n++; {
		case n < from || n > from+lost:
			return b
		case n == from+lost:
			return &record.Lost{Records: uint64(lost)}
		}
		return nil
	})
}
