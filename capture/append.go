package capture

import (
	"encoding/binary"
	"math"
)

// Flags of an Opened and a Bound, in their first byte.
const (
	flagAgain = 1 << iota
	flagDeliverLate
	flagReliable
)

func flag(set bool, f byte) byte {
	if set {
		return f
	}
	return 0
}

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendInt(b []byte, v int) []byte { return binary.AppendUvarint(b, uint64(max(v, 0))) }

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(appendInt(b, len(s)), s...)
}

func appendFixed(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

func (r *Start) append(b []byte) []byte {
	b = appendFixed(b, uint64(r.Wall.UnixNano()))
	return appendFixed(appendInt(b, r.Index), r.Run)
}

func (r *Schema) append(b []byte) []byte { return append(appendUint(b, r.ID), r.JSON...) }
func (r *Prior) append(b []byte) []byte  { return append(appendFixed(b, r.Hash), r.File...) }

func (r *Opened) append(b []byte) []byte {
	b = append(b, flag(r.Again, flagAgain))
	b = appendFixed(appendFixed(appendUint(b, r.Player), r.Session), r.Client)
	addr, _ := r.Addr.MarshalText() // it has no error
	return appendInt(appendText(appendText(b, addr), r.Suite), r.Seal)
}

func (r *Closed) append(b []byte) []byte { return append(appendUint(b, r.Player), r.Cause...) }

func (r *Bound) append(b []byte) []byte {
	b = append(b, flag(r.Again, flagAgain)|flag(r.DeliverLate, flagDeliverLate)|flag(r.Reliable, flagReliable))
	b = appendUint(appendInt(appendUint(b, r.Player), r.RPC), r.Schema)
	b = appendFixed(b, math.Float64bits(r.RateHz))
	b = appendInt(appendInt(appendInt(b, r.PeerRing), r.Frames), r.Ring)
	return appendFixed(append(b, byte(r.Codec)), r.Prior)
}

func (r *Datagram) append(b []byte) []byte {
	b = appendInt(appendUint(appendUint(b, r.Player), r.Number), r.Size)
	return append(b, r.Body...)
}

func (r *Message) append(b []byte) []byte { return append(appendUint(b, r.Player), r.Body...) }

func (r *Decoded) append(b []byte) []byte {
	b = appendUint(appendInt(appendUint(b, r.Player), r.RPC), r.Seq)
	return binary.LittleEndian.AppendUint32(append(appendInt(b, r.Frames), byte(r.Kind)), r.Hash)
}

func (r *Dropped) append(b []byte) []byte {
	b = append(appendInt(appendUint(b, r.Player), r.RPC+1), flag(r.Decoder, 1))
	return append(b, r.Reason...)
}

func (r *Withheld) append(b []byte) []byte {
	b = appendUint(appendInt(appendUint(b, r.Player), r.RPC), r.Seq)
	return append(b, r.Reason...)
}

func (r *Lost) append(b []byte) []byte { return appendUint(b, r.Records) }

func (r *Counts) append(b []byte) []byte {
	b = appendInt(b, len(r.Drops))
	for _, c := range r.Drops {
		b = appendUint(appendText(b, c.Reason), c.N)
	}
	return b
}

func (r *End) append(b []byte) []byte { return append(b, flag(r.More, 1)) }
