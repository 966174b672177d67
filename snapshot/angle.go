package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// wrapDifference wraps a difference of angles to half a turn in either direction.
func (f *Field) wrapDifference(d int64) int64 {
	turn := int64(f.Hi) - int64(f.Lo) + 1
	d = (d + turn/2) % turn
	if d < 0 {
		d += turn
	}
	return d - turn/2
}

// codeAngle codes a field of angles into cur. The prediction of each is the baseline or constant
// angular velocity, whichever would have predicted the baseline better.
func (pc *payloadCodec) codeAngle(field int, m *angleModel, cur []int32) {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	turn := int64(f.Hi) - int64(f.Lo) + 1
	for k := range cur {
		base := int64(o.base[at+k])
		now := pc.angleChange(f, base, int64(o.row[1][at+k]), o.lag[1])
		before := pc.angleChange(f, int64(o.row[1][at+k]), int64(o.row[3][at+k]), o.lag[3]-o.lag[1])
		guess, miss := base, fixed.Abs(now)
		if on := fixed.Abs(now - before); on < miss {
			guess, miss = base+now, on
		}
		level := rangecoder.Level(fixed.Log2(miss * 16))
		d := pc.Int(&m.numbers, level, k*9+3*rangecoder.Sign3(now)+rangecoder.Sign3(before), f.wrapDifference(int64(cur[k])-guess))
		pc.bad = pc.bad || d != f.wrapDifference(d)
		v := (guess + d - int64(f.Lo)) % turn
		if v < 0 {
			v += turn
		}
		pc.store(&cur[k], int32(int64(f.Lo)+v))
	}
}

// angleChange returns the change of an angle between two sets, lag snapshots apart, scaled to the
// coded distance.
func (pc *payloadCodec) angleChange(f *Field, to, from, lag int64) int64 {
	if lag <= 0 {
		return 0
	}
	return f.wrapDifference(to-from) * pc.refs.distance / lag
}
