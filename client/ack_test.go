package client

import (
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// TestBadAckBeforeGoodOne has the ack of an RPC that is not bound come before one
// that is needed.
func TestBadAckBeforeGoodOne(t *testing.T) {
	buttons, err := schema.New("Buttons", 60, []schema.Field{{Name: "Buttons", Kind: schema.KindBits, Width: 16}})
	if err != nil {
		t.Fatal(err)
	}
	ack := func(number int) (*rpcdelta.Encoder, []byte) {
		enc, err := rpcdelta.NewEncoder(buttons, rpcdelta.EncoderConfig{RPC: number})
		if err != nil {
			t.Fatal(err)
		}
		dec, err := rpcdelta.NewDecoder(buttons, rpcdelta.DecoderConfig{RPC: number})
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := enc.AppendFrame(nil, buttons.NewFrame())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dec.Decode(b); err != nil {
			t.Fatal(err)
		}
		return enc, dec.AppendAck(nil)
	}
	_, bad := ack(1)
	enc, good := ack(0)
	c := &Conn{streams: []*stream{{enc: enc}}}
	if err := c.acks(append(bad, good...)); err == nil {
		t.Error("the bad ack is no error")
	}
	_, info, err := enc.AppendFrame(nil, buttons.NewFrame())
	if err != nil || info.Kind != rpcdelta.Delta {
		t.Errorf("%+v, %v: the good ack was dropped", info, err)
	}
}
