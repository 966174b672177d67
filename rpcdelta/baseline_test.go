package rpcdelta

import (
	"testing"

	"pgregory.net/rapid"
)

// TestShorterIsSent: the encoder never sends a delta that takes more, with its
// header, than the frame takes without a baseline.
func TestShorterIsSent(t *testing.T) {
	for _, codec := range Codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkShorterIsSent(t, codec) })
		})
	}
}

func checkShorterIsSent(t *rapid.T, codec Codec) {
	pick := rapidPicker(t)
	p := newPair(t, pick.schema(), EncoderConfig{Codec: codec, Baselines: rapid.IntRange(0, 3).Draw(t, "baselines")}, DecoderConfig{})
	for range 5 {
		pick.frame(p.s, p.frame, p.delivered)
		coded, _, _ := p.enc.coder.encode(nil, &payload{frames: []*Frame{p.frame}, newest: p.enc.next})
		intra := 8 * (longHeader + len(coded))
		info := p.exchange(t)
		h := p.header(t) // a hash is extra
		if sent := info.HeaderBits + info.PayloadBits + 8*(h.uncheckedSize()-h.size()); sent > intra {
			t.Fatalf("%+v in %d bits, but %d without a baseline", info, sent, intra)
		}
	}
}

// TestBaselines: of several baselines the best is used: a value that comes and
// goes costs least as the difference from a frame that had it.
func TestBaselines(t *testing.T) {
	for _, codec := range Codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			s := mustSchema(t, Field{Name: "B", Kind: KindFixed, Size: 40})
			total := func(baselines int) (bits, oldest int) {
				p := newPair(t, s, EncoderConfig{Codec: codec, Baselines: baselines}, DecoderConfig{})
				for i := range 60 {
					for k := range 10 {
						p.frame.Bytes[0][k] = byte((i%3 + 1) * (k*k + 7*k + 1))
					}
					info := p.exchange(t)
					bits += info.PayloadBits
					oldest = max(oldest, info.BaselineAge)
				}
				return bits, oldest
			}
			one, age := total(1)
			three, oldest := total(3)
			t.Logf("%d bits by one baseline, %d by three", one, three)
			if age > 1 || oldest != 3 || 3*three > one {
				t.Errorf("%d bits by baselines up to %d old, %d by those up to %d old", one, age, three, oldest)
			}
		})
	}
}
