package capture

import "github.com/uplink-rpc/uplink/rpcdelta"

// Hash folds the frames of a payload into 32 bits: of each its place before the newest, its kind, whether it is late,
// its components and its byte strings. Equal frames have equal hashes, wherever the count of sequences began.
func Hash(frames []rpcdelta.Delivery) uint32 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, 64 bits
	h := uint64(offset)
	add := func(v uint64) { h = (h ^ v) * prime }
	for i := range frames {
		d := &frames[i]
		add(frames[len(frames)-1].Seq - d.Seq)
		add(uint64(d.Kind))
		if d.Late {
			add(1)
		}
		for _, v := range d.Frame.Ints {
			add(uint64(uint32(v)))
		}
		for _, b := range d.Frame.Bytes {
			add(uint64(len(b)))
			for _, c := range b {
				add(uint64(c))
			}
		}
	}
	return uint32(h ^ h>>32)
}
