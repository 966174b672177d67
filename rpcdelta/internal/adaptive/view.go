package adaptive

import "github.com/uplink-rpc/uplink/schema"

// view is the set of frames that are known while a row is coded: accepted frames up to the
// baseline, and the earlier rows of the payload.
type view struct {
	known *Frames
	slot  int   // slot of base in known
	base  int64 // newest sequence number to look up in known; -1 if none
	floor int64 // sequence numbers up to floor are not read
	first int64 // sequence number of rows[0]
	rows  []*schema.Frame
}

// newView returns a view of the frames after floor, up to base.
func newView(known *Frames, base, floor int64) view {
	floor = max(floor, base-int64(known.Cap()), -1)
	return view{known: known, slot: known.slot(uint64(base)), base: base, floor: floor}
}

// find returns the slot of frame seq, or -1 if it is not an accepted frame in the view.
func (v *view) find(seq int64) int {
	if seq <= v.floor || seq > v.base {
		return -1
	}
	i := v.slot - int(v.base-seq)
	if i < 0 {
		i += len(v.known.seqs)
	}
	if v.known.seqs[i] != uint64(seq)+1 {
		return -1
	}
	return i
}

// ints returns the components of frame seq, or nil.
func (v *view) ints(seq int64) []int32 {
	if seq > v.base {
		if r := v.row(seq); r != nil {
			return r.Ints[:v.known.width:v.known.width]
		}
		return nil
	}
	if i := v.find(seq); i >= 0 {
		return v.known.intsOf(i)
	}
	return nil
}

// bytes returns the byte strings of frame seq.
func (v *view) bytes(seq int64) (b [][]byte, ok bool) {
	if i := v.find(seq); i >= 0 {
		return v.known.bytesOf(i), true
	}
	if r := v.row(seq); r != nil {
		return r.Bytes, true
	}
	return nil, false
}

// row returns frame seq if it is an earlier row of the payload, or nil.
func (v *view) row(seq int64) *schema.Frame {
	if i := seq - v.first; seq > v.base && i >= 0 && i < int64(len(v.rows)) {
		return v.rows[i]
	}
	return nil
}
