package client

import (
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// TestBadAckBeforeGoodOne has the ack of an RPC that is not bound come before one
// that is needed.
func TestBadAckBeforeGoodOne(t *testing.T) {
	schema, err := rpcdelta.NewSchema("Buttons", 60, []rpcdelta.Field{{Name: "Buttons", Kind: rpcdelta.KindBits, Width: 16}})
	if err != nil {
		t.Fatal(err)
	}
	ack := func(number int) (*rpcdelta.Encoder, []byte) {
		enc, err := rpcdelta.NewEncoder(schema, rpcdelta.EncoderConfig{RPC: number})
		if err != nil {
			t.Fatal(err)
		}
		dec, err := rpcdelta.NewDecoder(schema, rpcdelta.DecoderConfig{RPC: number})
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := enc.AppendFrame(nil, schema.NewFrame())
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
	_, info, err := enc.AppendFrame(nil, schema.NewFrame())
	if err != nil || info.Kind != rpcdelta.Delta {
		t.Errorf("%+v, %v: the good ack was dropped", info, err)
	}
}
