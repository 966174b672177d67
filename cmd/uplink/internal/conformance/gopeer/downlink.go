package gopeer

import (
	"fmt"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/replication/areas"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
)

func (p *peer) describe(words []string) (_ string, err error) {
	p.objects[words[0]], err = protocol.ParseObjects(words[1:])
	return "", err
}

func (p *peer) snapshotDecoder(words []string) (string, error) {
	s, err := get(p.objects, words[1], "description of objects")
	if err != nil {
		return "", err
	}
	p.snapshots[words[0]] = snapshot.NewDecoder(s, nil)
	return "", nil
}

// view is a decoder of a world with areas, and the number of its object types.
type view struct {
	*areas.Decoder
	types int
}

func (p *peer) areas(words []string) (string, error) {
	var types []*snapshot.Schema
	for _, h := range words[1:] {
		s, err := get(p.objects, h, "description of objects")
		if err != nil {
			return "", err
		}
		types = append(types, s)
	}
	p.views[words[0]] = &view{areas.NewDecoder(types...), len(types)}
	return "", nil
}

func (p *peer) stateReceiver(words []string) (string, error) {
	s, err := get(p.objects, words[1], "description of objects")
	if err != nil {
		return "", err
	}
	velocities, err := protocol.ParseVelocities(words[2:])
	if err != nil {
		return "", err
	}
	p.states[words[0]], err = statesync.NewReceiver(s, statesync.Config{Velocities: velocities})
	return "", err
}

func (p *peer) receive(words []string) (string, error) {
	b, err := protocol.ParseBytes(words[1])
	if err != nil {
		return "", err
	}
	if d := p.snapshots[words[0]]; d != nil {
		info, set, err := d.Decode(b)
		if err != nil {
			return "", dropped(err)
		}
		return protocol.Snapshot(info, set), nil
	}
	if v := p.views[words[0]]; v != nil {
		number, distance, err := v.Decode(b)
		if err != nil {
			return "", dropped(err)
		}
		return protocol.View(number, distance, v.Decoder, v.types), nil
	}
	r, err := get(p.states, words[0], "receiver")
	if err != nil {
		return "", err
	}
	u, err := r.Decode(b)
	if err != nil {
		return "", dropped(err)
	}
	return protocol.Update(u), nil
}

// acks answers with the acks of a decoder of any kind.
func (p *peer) acks(words []string) (string, error) {
	if d := p.snapshots[words[0]]; d != nil {
		a := d.Ack()
		if p.fault == "snapshots" {
			a.Window |= 1
		}
		return protocol.Bytes(a.Append(nil)), nil
	}
	if v := p.views[words[0]]; v != nil {
		a := v.Ack()
		if p.fault == "areas" {
			a.Window |= 1
		}
		return protocol.Bytes(a.Append(nil)), nil
	}
	if r := p.states[words[0]]; r != nil {
		a := r.Ack()
		if p.fault == "state" {
			a.Window |= 1
		}
		return protocol.Bytes(a.Append(nil)), nil
	}
	if d := p.decoders[words[0]]; d != nil {
		return protocol.Bytes(d.AppendAck(nil)), nil
	}
	return "", fmt.Errorf("handle %s is no decoder", words[0])
}
