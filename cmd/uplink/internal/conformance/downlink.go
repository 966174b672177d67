package conformance

import (
	"context"
	"errors"
	"strconv"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
)

// objects are objects that move at random.
type objects struct {
	t      *tester
	schema *snapshot.Schema
	fields []snapshot.Field
	rows   map[uint16]*object
}

type object struct {
	snapshot.Object
	row    []int32
	moving bool
}

// objects returns random objects. The first fields of the first worlds are a position, its rate of
// change, an orientation and its angular velocity.
func (t *tester) objects(n int) (*objects, error) {
	fields := []snapshot.Field{
		{Class: schema.ClassNumber, N: 3, Lo: -1 << 18, Hi: 1 << 18},
		{Class: schema.ClassNumber, N: 3, Lo: -4000, Hi: 4000},
	}
	optional := []snapshot.Field{
		{Class: schema.ClassQuat, N: 4, Lo: -512, Hi: 511},
		{Class: schema.ClassNumber, N: 3, Lo: -4000, Hi: 4000},
		{Class: schema.ClassInteger, N: 1, Lo: 0, Hi: 1},
		{Class: schema.ClassAngle, N: 2, Lo: 0, Hi: 4095},
		{Class: schema.ClassInteger, N: 1, Lo: -100000, Hi: 1 << 30},
		{Class: schema.ClassBytes, N: 3, Lo: 0, Hi: 8},
	}
	for i, f := range optional {
		if n == 0 || t.rng.IntN(2) == 0 || i == 0 {
			fields = append(fields, f)
		}
	}
	for i := range fields {
		fields[i].Name = strconv.Itoa(i)
	}
	s, err := snapshot.NewSchema(fields...)
	return &objects{t: t, schema: s, fields: fields, rows: map[uint16]*object{}}, err
}

// add adds an object with random components.
func (o *objects) add(id uint16, generation uint8) {
	rng, row := o.t.rng, []int32(nil)
	for _, f := range o.fields {
		row = append(row, o.t.components(&f)...)
	}
	b := &object{Object: snapshot.Object{ID: id, Generation: generation}, row: row, moving: rng.IntN(2) == 0}
	o.rows[id] = b
}

// components returns random components of a field.
func (t *tester) components(f *snapshot.Field) []int32 {
	out := make([]int32, f.N)
	switch f.Class {
	case schema.ClassQuat:
		out[0] = int32(t.rng.IntN(4))
		for k := 1; k < 4; k++ {
			out[k] = int32(t.rng.IntN(300)) - 150
		}
	case schema.ClassBytes:
		size := t.rng.IntN(int(f.Hi) + 1)
		out[0] = int32(size)
		for k := range size {
			out[1+k/4] |= int32(uint32(t.rng.IntN(256)) << (k % 4 * 8))
		}
	default:
		for k := range out {
			out[k] = int32(int64(f.Lo) + t.rng.Int64N(int64(f.Hi)-int64(f.Lo)+1))
		}
	}
	return out
}

// step moves the objects, and sometimes adds, removes or replaces one.
func (o *objects) step() {
	rng := o.t.rng
	for id := range uint16(40) {
		b := o.rows[id]
		switch {
		case rng.IntN(200) != 0:
		case b == nil:
			o.add(id, uint8(rng.IntN(256)))
		case rng.IntN(2) == 0:
			delete(o.rows, id)
		default:
			o.add(id, b.Generation+1)
		}
		if b = o.rows[id]; b == nil {
			continue
		}
		if rng.IntN(60) == 0 {
			b.moving = !b.moving
		}
		o.move(b)
	}
}

func (o *objects) move(b *object) {
	rng, at := o.t.rng, 0
	for i, f := range o.fields {
		c := b.row[at : at+f.N]
		at += f.N
		switch {
		case f.Class == schema.ClassInteger || f.Class == schema.ClassBytes:
			if rng.IntN(30) == 0 {
				copy(c, o.t.components(&f))
			}
		case !b.moving:
			if i == 1 {
				clear(c)
			}
		default:
			for k := range c {
				if f.Class == schema.ClassQuat && k == 0 {
					continue
				}
				c[k] = min(max(c[k]+int32(rng.IntN(9))-4, f.Lo), f.Hi)
				if i == 0 {
					c[k] = min(max(c[k]+b.row[f.N+k]/60, f.Lo), f.Hi)
				}
			}
		}
	}
}

// fill puts all objects into a set.
func (o *objects) fill(set *snapshot.Set) error {
	for id := range uint16(40) {
		if b := o.rows[id]; b != nil {
			if err := set.Add(b.Object, b.row); err != nil {
				return err
			}
		}
	}
	return nil
}

// downlink is a sender of this implementation. Its decoder, also of this implementation, receives
// the same messages as the peer.
type downlink struct {
	append func() ([]byte, error)
	decode func([]byte) (string, error)
	acks   func() []byte
	ack    func([]byte) error
}

// play sends messages over a link with losses and compares all answers of the peer.
func (t *tester) play(h string, d *downlink) error {
	w, err := t.wires()
	if err != nil {
		return err
	}
	for i := range t.options.Frames {
		payload, err := d.append()
		if err != nil {
			return err
		}
		w.down.Push(w.now, payload, len(payload))
		w.now += interval
		for {
			payload, _, ok := w.down.Pop(w.now)
			if !ok {
				break
			}
			if t.rng.IntN(10) == 0 {
				if err := t.receives(d, h, t.damaged(payload)); err != nil {
					return err
				}
			}
			if err := t.receives(d, h, payload); err != nil {
				return err
			}
		}
		if i%2 == 0 {
			want := d.acks()
			got, err := t.must("acks", h)
			if err != nil {
				return err
			}
			if !t.check(got == protocol.Bytes(want), "ack %s, want %x", got, want) {
				return errGiveUp
			}
			w.up.Push(w.now, want, 0)
		}
		for {
			b, _, ok := w.up.Pop(w.now)
			if !ok {
				break
			}
			// A damaged message can lead the decoder to ack messages that were never sent.
			if err := d.ack(b); err != nil && !errors.Is(err, snapshot.ErrAck) {
				return err
			}
		}
	}
	_, err = t.must("free", h)
	return err
}

func (t *tester) receives(d *downlink, h string, payload []byte) error {
	want, reason := d.decode(payload)
	if reason != nil {
		want = protocol.Reason(reason)
	}
	got, dropped, err := t.ask("receive", h, protocol.Bytes(payload))
	if err == nil && !t.check(got == want && dropped == (reason != nil), "message %.400x: %s, want %s", payload, verdict(dropped, got), verdict(reason != nil, want)) {
		err = errGiveUp
	}
	return err
}

// describe sends the description of the objects to the peer and returns its handle.
func (t *tester) describe(o *objects) (string, error) {
	h := t.handle()
	_, err := t.must(append([]string{"objects", h}, protocol.Objects(o.fields)...)...)
	return h, err
}

func testSnapshots(ctx context.Context, t *tester) error {
	return t.each(ctx, "world", func(n int) error {
		o, err := t.objects(n)
		if err != nil {
			return err
		}
		described, err := t.describe(o)
		if err != nil {
			return err
		}
		h := t.handle()
		if _, err := t.must("snapshots", h, described); err != nil {
			return err
		}
		world, decoder := snapshot.NewHistory(o.schema, nil), snapshot.NewDecoder(o.schema, nil)
		var enc snapshot.Encoder
		var receipts snapshot.Receipts
		return t.play(h, &downlink{
			append: func() ([]byte, error) {
				o.step()
				if err := o.fill(world.Begin()); err != nil {
					return nil, err
				}
				number := world.Next() - 1
				baseline := receipts.Baseline(number)
				payload, _, err := enc.Append(nil, world, baseline, 1<<16)
				receipts.Sent(number, baseline)
				return payload, err
			},
			decode: func(b []byte) (string, error) {
				info, set, err := decoder.Decode(b)
				if err != nil {
					return "", err
				}
				return protocol.Snapshot(info, set), nil
			},
			acks: func() []byte {
				a := decoder.Ack()
				return a.Append(nil)
			},
			ack: func(b []byte) error {
				a, _, err := snapshot.ParseAck(b)
				if err == nil {
					_, err = receipts.Ack(a)
				}
				return err
			},
		})
	})
}

func testState(ctx context.Context, t *tester) error {
	return t.each(ctx, "world", func(n int) error {
		o, err := t.objects(n)
		if err != nil {
			return err
		}
		described, err := t.describe(o)
		if err != nil {
			return err
		}
		velocities := []schema.Velocity{{Field: "0", Of: "1", PerTick: schema.StepsPerTick(1.0 / 60)}}
		h := t.handle()
		if _, err := t.must(append([]string{"state", h, described}, protocol.Velocities(velocities)...)...); err != nil {
			return err
		}
		cfg := statesync.Config{Velocities: velocities, Budget: 200 + t.rng.IntN(600)}
		world, err := statesync.NewShared(o.schema, cfg)
		if err != nil {
			return err
		}
		sender, err := world.NewSender(cfg)
		if err != nil {
			return err
		}
		receiver, err := statesync.NewReceiver(o.schema, statesync.Config{Velocities: velocities})
		if err != nil {
			return err
		}
		set, tick := o.schema.NewSet(), int64(0)
		return t.play(h, &downlink{
			append: func() ([]byte, error) {
				o.step()
				set.Reset()
				if err := o.fill(set); err != nil {
					return nil, err
				}
				tick++
				err := errors.Join(world.SetTick(tick, set), sender.AddInputs(tick, statesync.Input{Player: uint8(n), Data: []byte{byte(tick / 8)}}))
				for i := range set.Len() {
					err = errors.Join(err, world.Prioritize(set.Object(i).ID, 1+float64(i%5)))
				}
				if err != nil {
					return nil, err
				}
				packet, _, err := sender.Append(nil)
				return packet, err
			},
			decode: func(b []byte) (string, error) {
				u, err := receiver.Decode(b)
				if err != nil {
					return "", err
				}
				return protocol.Update(u), nil
			},
			acks: func() []byte {
				a := receiver.Ack()
				return a.Append(nil)
			},
			ack: func(b []byte) error {
				a, _, err := statesync.ParseAck(b)
				if err == nil {
					err = sender.Ack(a)
				}
				return err
			},
		})
	})
}
