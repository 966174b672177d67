package rpcdelta

import (
	"cmp"
	"errors"
	"fmt"
)

// Check says which setting [NewEncoder] would not take, before there is a schema.
func (c EncoderConfig) Check() error {
	_, err := c.withDefaults()
	return err
}

func (c EncoderConfig) withDefaults() (EncoderConfig, error) {
	c.MaxPayload = cmp.Or(c.MaxPayload, DefaultMaxPayload)
	c.RedundancyBytes = cmp.Or(c.RedundancyBytes, DefaultRedundancyBytes)
	c.Delivery = cmp.Or(c.Delivery, DefaultDelivery)
	switch {
	case c.MaxPayload < longHeader+hashSize+1:
		return c, fmt.Errorf("rpcdelta: payloads of %d bytes are too small", c.MaxPayload)
	case c.Redundancy < RedundancyOff || c.Redundancy > MaxRedundancy:
		return c, fmt.Errorf("rpcdelta: Redundancy of %d frames, want at most %d, RedundancyAuto or RedundancyOff", c.Redundancy, MaxRedundancy)
	case !(c.Delivery >= MinDelivery && c.Delivery <= MaxDelivery):
		return c, fmt.Errorf("rpcdelta: Delivery of %v, want %v to %v", c.Delivery, MinDelivery, MaxDelivery)
	case c.RedundancyBytes < 0:
		return c, fmt.Errorf("rpcdelta: RedundancyBytes is %d", c.RedundancyBytes)
	}
	return c, errors.Join(checkCodec(&c.Codec), checkRPC(c.RPC), checkRing("Ring", &c.Ring), checkRing("PeerRing", &c.PeerRing))
}
