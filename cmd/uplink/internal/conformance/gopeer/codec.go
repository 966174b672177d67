package gopeer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

type encoder struct {
	*rpcdelta.Encoder
	schema *schema.Schema
	codec  rpcdelta.Codec
}

// numbers parses words of a request.
func numbers(words ...string) ([]int, error) {
	out := make([]int, len(words))
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

func (p *peer) encoder(words []string) (string, error) {
	s, err := p.compiled(words[1])
	if err != nil {
		return "", err
	}
	codec, err := rpcdelta.ParseCodec(words[2])
	if err != nil {
		return "", err
	}
	n, err := numbers(words[3:6]...)
	if err != nil {
		return "", err
	}
	copies := n[2]
	if copies == 0 {
		copies = rpcdelta.RedundancyOff
	}
	e, err := rpcdelta.NewEncoder(s, rpcdelta.EncoderConfig{Codec: codec, RPC: n[0], Ring: n[1], PeerRing: n[1], Redundancy: copies})
	if err != nil {
		return "", err
	}
	p.encoders[words[0]] = &encoder{e, s, codec}
	return "", nil
}

func (p *peer) encode(words []string) (string, error) {
	e, err := get(p.encoders, words[0], "encoder")
	if err != nil {
		return "", err
	}
	f, err := protocol.ParseFrame(e.schema, words[1])
	if err != nil {
		return "", err
	}
	payload, _, err := e.AppendFrame(nil, f)
	return protocol.Bytes(payload), err
}

func (p *peer) ack(words []string) (string, error) {
	e, err := get(p.encoders, words[0], "encoder")
	if err != nil {
		return "", err
	}
	b, err := protocol.ParseBytes(words[1])
	if err != nil {
		return "", err
	}
	a, _, err := rpcdelta.ParseAck(b)
	if err != nil {
		return "", errDrop("malformed")
	}
	if p.fault == e.codec.String()+" encode" {
		a.ResetReason = nil
	}
	if err := e.Ack(a); errors.Is(err, rpcdelta.ErrAck) {
		return "", errDrop("")
	} else if err != nil {
		return "", err
	}
	return "", nil
}

func (p *peer) decoder(words []string) (string, error) {
	s, err := p.compiled(words[1])
	if err != nil {
		return "", err
	}
	codec, err := rpcdelta.ParseCodec(words[2])
	if err != nil {
		return "", err
	}
	n, err := numbers(words[3:5]...)
	if err != nil {
		return "", err
	}
	cfg := rpcdelta.DecoderConfig{Codec: codec, RPC: n[0], Ring: n[1], PeerRing: n[1], DeliverLate: p.fault == codec.String()+" decode"}
	p.decoders[words[0]], err = rpcdelta.NewDecoder(s, cfg)
	return "", err
}

func (p *peer) decode(words []string) (string, error) {
	d, err := get(p.decoders, words[0], "decoder")
	if err != nil {
		return "", err
	}
	b, err := protocol.ParseBytes(words[1])
	if err != nil {
		return "", err
	}
	deliveries, err := d.Decode(b)
	if err != nil {
		return "", dropped(err)
	}
	return Deliveries(deliveries), nil
}

// Deliveries returns the result of a decoded payload.
func Deliveries(all []rpcdelta.Delivery) string {
	var words []string
	for _, d := range all {
		words = append(words, fmt.Sprintf("%d %s", d.Seq, protocol.Frame(d.Frame)))
	}
	return strings.Join(words, " ")
}

func (p *peer) parseAck(words []string) (string, error) {
	b, err := protocol.ParseBytes(words[0])
	if err != nil {
		return "", err
	}
	a, rest, err := rpcdelta.ParseAck(b)
	if err != nil {
		return "", errDrop("malformed")
	}
	if p.fault == "acks" {
		a.Window &= 1<<31 - 1
	}
	return protocol.Ack(&a, len(b)-len(rest)), nil
}
