package rpcdelta

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schematest"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
	"github.com/uplink-rpc/uplink/schema"
)

// TestShorterIsSent verifies that a delta, with its header, is never larger than the frame without
// a baseline.
func TestShorterIsSent(t *testing.T) {
	for _, codec := range Codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkShorterIsSent(t, codec) })
		})
	}
}

func checkShorterIsSent(t *rapid.T, codec Codec) {
	pick := schematest.FromRapid(t)
	p := newPair(t, pick.Schema(), EncoderConfig{Codec: codec}, DecoderConfig{})
	for range 5 {
		pick.Frame(p.s, p.frame, p.delivered)
		coded, _, _ := p.enc.coder.encode(nil, &payload{frames: []*schema.Frame{p.frame}, newest: p.enc.next})
		keyframe := 8 * (wire.LongHeader + len(coded))
		info := p.exchange(t)
		h := p.header(t) // a hash is extra
		if sent := info.HeaderBits + info.PayloadBits + 8*(h.UncheckedSize()-h.Size()); sent > keyframe {
			t.Fatalf("%+v in %d bits, but %d without a baseline", info, sent, keyframe)
		}
	}
}
