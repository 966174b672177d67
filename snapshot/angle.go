package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// angleModel is what was learned of an Angle field.
type angleModel struct{ numbers rangecoder.IntModel }

// around brings a difference of angles into half a turn either way.
func (f *Field) around(d int64) int64 {
	turn := int64(f.Hi) - int64(f.Lo) + 1
	d = (d + turn/2) % turn
	if d < 0 {
		d += turn
	}
	return d - turn/2
}

// codeAngle codes field number field, numbers that wrap, into cur. Each is predicted to stay or to turn on, whichever
// would have predicted the baseline better.
func (w *walk) codeAngle(field int, m *angleModel, cur []int32) {
	o, f, at := &w.object, &w.schema.fields[field], w.schema.at[field]
	turn := int64(f.Hi) - int64(f.Lo) + 1
	for k := range cur {
		base := int64(o.base[at+k])
		now := w.turned(f, base, int64(o.row[1][at+k]), o.lag[1])
		before := w.turned(f, int64(o.row[1][at+k]), int64(o.row[3][at+k]), o.lag[3]-o.lag[1])
		guess, miss := base, fixed.Abs(now)
		if on := fixed.Abs(now - before); on < miss {
			guess, miss = base+now, on
		}
		level := rangecoder.Level(fixed.Log2(miss * 16))
		d := w.Int(&m.numbers, level, k*9+3*rangecoder.Sign3(now)+rangecoder.Sign3(before), f.around(int64(cur[k])-guess))
		w.bad = w.bad || d != f.around(d)
		v := (guess + d - int64(f.Lo)) % turn
		if v < 0 {
			v += turn
		}
		w.store(&cur[k], int32(int64(f.Lo)+v))
	}
}

// turned is how far an angle turned from one set to another, lag snapshots apart, over the coded distance.
func (w *walk) turned(f *Field, to, from, lag int64) int64 {
	if lag <= 0 {
		return 0
	}
	return f.around(to-from) * w.hist.distance / lag
}
