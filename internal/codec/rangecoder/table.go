package rangecoder

// Symbols is the number of symbols of a Table.
const Symbols = 64

// hintShift turns a frequency into the index of a hint.
const hintShift = ScaleBits - 6

// Table holds the frequencies of symbols. The zero value is not usable.
type Table struct {
	cum  [Symbols + 1]uint16 // symbol s lies in [cum[s], cum[s+1]); the last stands for Scale as 0
	hint [1 << 6]uint8       // the symbol in which each 64th of the scale begins
}

// Set makes t the table of the given frequencies, each above 0, whose sum is
// [Scale]. It panics if they are not so.
func (t *Table) Set(freq *[Symbols]uint16) {
	sum := uint32(0)
	for s, f := range freq {
		for i := (sum + 1<<hintShift - 1) >> hintShift; i < (sum+uint32(f)+1<<hintShift-1)>>hintShift && i < 1<<6; i++ {
			t.hint[i] = uint8(s)
		}
		t.cum[s] = uint16(sum)
		sum += uint32(f)
		if f == 0 {
			sum = 0
			break
		}
	}
	if sum != Scale {
		panic("rangecoder: frequencies must be above 0 and add up to 65536")
	}
	t.cum[Symbols] = 0
}
