// Package seq is arithmetic on 64-bit sequence numbers of which the wire carries the low bits.
package seq

// Unwrap returns the 64-bit number whose low bits are those of low, the wire's, and which lies nearest to newest: in
// newest-(2^(bits-1)-1) to newest+2^(bits-1). Bits of low above them are ignored. Where that number would be below 0
// or above 2^64-1, it is the next one that exists, 2^bits away. It panics unless bits is 1 to 64.
func Unwrap(newest, low uint64, bits uint) uint64 {
	if bits-1 > 63 {
		panic("seq: Unwrap needs 1 to 64 bits")
	}
	turn := uint64(1) << bits // 0 for 64 bits, which is right modulo 2^64
	ahead := (low - newest) & (turn - 1)
	behind := turn - ahead
	if ahead <= 1<<(bits-1) {
		if n := newest + ahead; n >= newest {
			return n
		}
		return newest - behind
	}
	if behind > newest {
		return newest + ahead
	}
	return newest - behind
}
