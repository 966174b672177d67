package bitio

import (
	"bytes"
	"testing"
)

// FuzzReader obeys a script of reads, a byte each, and compares with a reader of single bits.
func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{64, 57, 3})
	f.Add([]byte("some twenty bytes long"), []byte{5, 64, 1, 65, 130, 66, 64})
	f.Fuzz(func(t *testing.T, src, script []byte) {
		before := bytes.Clone(src)
		var r Reader
		r.Reset(src)
		pos, failed := uint(0), false
		for _, op := range script {
			switch {
			case op <= 64:
				want, ok := slowBits(src, pos, uint(op))
				failed = failed || !ok
				if got := r.ReadBits(uint(op)); failed && got != 0 || !failed && got != want {
					t.Fatalf("%d bits at %d: %x, want %x", op, pos, got, want)
				}
				pos += uint(op)
			case op == 65:
				r.Align()
				pad, _ := slowBits(src, pos, -pos&7)
				failed = failed || pad != 0
				pos += -pos & 7
				if rest := r.Rest(); failed && len(rest) != 0 || !failed && !bytes.Equal(rest, src[pos/8:]) {
					t.Fatalf("rest at %d: %x", pos, rest)
				}
			default:
				limit := uint32(op-65) * 37
				left := r.Len()
				if v := r.ReadTruncated(limit); v >= limit {
					t.Fatalf("%d is not below %d", v, limit)
				}
				failed = r.Err() != nil
				pos += uint(left - r.Len())
			}
			if (r.Err() != nil) != failed {
				t.Fatalf("error %v, want one: %v", r.Err(), failed)
			}
		}
		if !bytes.Equal(src, before) {
			t.Fatal("reading changed the input")
		}
	})
}

func slowBits(src []byte, pos, n uint) (v uint64, ok bool) {
	if pos+n > uint(len(src))*8 {
		return 0, false
	}
	for i := range n {
		v |= uint64(src[(pos+i)/8]>>((pos+i)%8)&1) << i
	}
	return v, true
}
