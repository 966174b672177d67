package statesync_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/statesync"
	"github.com/uplink-rpc/uplink/internal/uplinktest/corpus"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/sessions"
	"github.com/uplink-rpc/uplink/internal/uplinktest/steer"
)

// session sends n packets. It simulates with integers only, with the same result on every
// processor. It calls each with each packet and its decoded update, which is nil after a loss.
func session(t testing.TB, s *sender, r *statesync.Receiver, n int, each func(packet []byte, u *statesync.Update)) {
	sc := testSchema(t)
	seed := uint32(1)
	random := func(n uint32) int32 { seed = seed*1664525 + 1013904223; return int32(seed >> 8 % n) }
	var rows [20][15]int32
	for i := range rows {
		rows[i] = [15]int32{random(9000), random(9000), random(500), 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	}
	s.SetViewer(0)
	set := sc.NewSet()
	var acks []statesync.Ack
	for tick := range int64(n) {
		set.Reset()
		for i := range rows {
			x := &rows[i]
			switch random(40) {
			case 0:
				x[7], x[8], x[10] = random(8000)-4000, random(8000)-4000, random(4000)-2000
			case 1:
				x[7], x[8], x[10] = 0, 0, 0
			case 2:
				x[14] ^= 1
			}
			x[0], x[1], x[4] = (x[0]+x[7]/60)%100000, (x[1]+x[8]/60)%100000, min(max(x[4]+x[10]/8, -9000), 9000)
			if random(200) > 0 {
				must(t, set.Add(snapshot.Object{ID: uint16(i * 3), Generation: uint8(tick / 300)}, x[:]))
				_ = s.Prioritize(uint16(i*3), float64(1+i%4))
			}
		}
		must(t, s.AddInputs(tick, statesync.Input{Player: 1, Data: []byte{byte(tick / 16), 5}}))
		out, _, err := s.Append(nil, tick, set)
		must(t, err)
		var u *statesync.Update
		if random(20) > 0 {
			u = decode(t, r, out)
		}
		each(out, u)
		if acks = append(acks, r.Ack()); len(acks) > 6 {
			must(t, s.Ack(acks[0]))
			acks = acks[1:]
		}
	}
}

// TestGolden compares hashes of the packets of a session.
func TestGolden(t *testing.T) {
	cfg := config
	cfg.Budget = 100
	s, r := pair(t, testSchema(t), cfg)
	var lines []string
	session(t, s, r, 600, func(p []byte, _ *statesync.Update) {
		sum := sha256.Sum256(p)
		lines = append(lines, fmt.Sprintf("%d %s", len(p), hex.EncodeToString(sum[:6])))
	})
	golden(t, "testdata/session.golden", strings.Join(lines, "\n")+"\n")
}

// TestGoldenUpdates compares the packets of a short session and their decoded updates with
// testdata/updates.golden.
func TestGoldenUpdates(t *testing.T) {
	cfg := config
	cfg.Budget = 60
	s, r := pair(t, testSchema(t), cfg)
	var log updateLog
	log.begin(testSchema(t), &cfg)
	session(t, s, r, 100, func(p []byte, u *statesync.Update) { log.packet(p, u, "lost", r.Ack()) })
	golden(t, "testdata/updates.golden", log.String())
}

// TestNewStart checks that a receiver without the baselines requests a restart.
func TestNewStart(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	session(t, s, r, 100, func([]byte, *statesync.Update) {})
	_, other := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 20)
	missing := 0
	for tick := int64(100); tick < 130; tick++ {
		out, _ := send(t, s, tick, set)
		switch _, err := other.Decode(out); {
		case errors.Is(err, snapshot.ErrBaselineMissing):
			missing++
		case err != nil:
			t.Fatal(err)
		}
		if tick%3 == 0 {
			ack := other.Ack()
			must(t, s.Ack(ack))
		}
	}
	if st := s.Stats(); missing == 0 || missing > 3 || st.Starts != 1 || other.Ack().Reset || other.Ack().None {
		t.Errorf("%d packets without a baseline, %+v, %+v", missing, st, other.Ack())
	}
}

// TestDesync verifies that the divergence check detects different velocities of both ends within
// 64 packets.
func TestDesync(t *testing.T) {
	cfg := config
	cfg.Velocities = []schema.Velocity{config.Velocities[0], config.Velocities[1]}
	cfg.Velocities[0].PerTick += cfg.Velocities[0].PerTick / 10
	s, _ := pair(t, testSchema(t), config)
	_, r := pair(t, testSchema(t), cfg)
	set := testSchema(t).NewSet()
	for tick := range int64(100) {
		set.Reset()
		must(t, set.Add(snapshot.Object{}, []int32{int32(tick) * 50, 0, 0, 3, 0, 0, 0, 3000, 0, 0, 0, 0, 0, 0, 0}))
		_ = s.Prioritize(0, 1)
		out, _, err := s.Append(nil, tick, set)
		must(t, err)
		_, err = r.Decode(out)
		if tick == 64 && !errors.Is(err, snapshot.ErrDesync) {
			t.Fatalf("packet 64 gave %v", err)
		}
		_ = s.Ack(r.Ack())
	}
	if s.Stats().Starts != 1 || r.Stats().Desync != 1 {
		t.Errorf("%+v, %+v", s.Stats(), r.Stats())
	}
}

// TestLongRun passes the wraparounds of sequence numbers in headers and acks, and long
// interruptions.
func TestLongRun(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	set := still(t, testSchema(t), 2)
	for n := range int64(1<<16 + 3000) {
		_ = s.Prioritize(uint16(n%2), 1)
		out, info, err := s.Append(nil, n, set)
		must(t, err)
		if n%4096 > 3900 { // nothing comes for longer than the ring
			continue
		}
		u, err := r.Decode(out)
		if err != nil || u.Seq != uint16(n) || info.Seq != uint16(n) || len(u.Objects) != 1 {
			t.Fatalf("packet %d came as %+v: %v", n, u, err)
		}
		must(t, s.Ack(r.Ack()))
	}
	if st := s.Stats(); st.Starts > 17*4 || st.Whole > 17*160 {
		t.Errorf("%+v", st)
	}
}

// TestCounts checks the counts of duplicate, late and malformed packets.
func TestCounts(t *testing.T) {
	s, r := pair(t, testSchema(t), config)
	var sent [][]byte
	_, shadow := pair(t, testSchema(t), config)
	session(t, s, shadow, 200, func(p []byte, _ *statesync.Update) { sent = append(sent, p) })
	for i := range 20 {
		if _, err := r.Decode(sent[i]); err != nil && !errors.Is(err, snapshot.ErrBaselineMissing) {
			t.Fatal(err)
		}
	}
	was := r.Stats()
	for range 3 {
		if _, err := r.Decode(sent[10]); !errors.Is(err, snapshot.ErrLate) {
			t.Fatalf("a repeated packet gave %v", err)
		}
	}
	for _, bad := range [][]byte{nil, {1}, {0, 0}, {0, 0, 0xff, 0}, make([]byte, statesync.MaxPacket+1), {63, 0}, append([]byte{0, 8, 0, 0}, 0x80, 0)} {
		if _, err := r.Decode(bad); err == nil {
			t.Errorf("% x was decoded", bad[:min(len(bad), 9)])
		}
	}
	now := r.Stats()
	if now.Packets != was.Packets || now.Duplicate != was.Duplicate+3 || now.Malformed != was.Malformed+7 {
		t.Errorf("%+v became %+v", was, now)
	}
}

// FuzzDecode passes packets to a receiver that has received the first packets of a golden session:
// the input has the number of these packets, and entries. What is decoded is valid, and the same in
// a receiver without the rejected packets: these have no effect, and the next packet of the session
// is decoded after them.
func FuzzDecode(f *testing.F) {
	const history = 16
	s := sessions.Read(f, "internal/statesync/testdata/kinds.golden", "packet")
	cfg := statesync.Config{Rest: "Asleep", Velocities: kindsVelocities}
	begin := func(t testing.TB, in []byte) (r *statesync.Receiver, held int) {
		r, err := statesync.NewReceiver(s.Schemas[0], cfg)
		must(t, err)
		held = int(in[0]) % (history + 1)
		for _, p := range s.Messages[:held] {
			_, _ = r.Decode(p)
		}
		return r, held
	}
	x := corpus.Target{Parser: "state", Inputs: 20_000, Check: func(t testing.TB, in []byte) {
		if len(in) == 0 {
			return
		}
		r, held := begin(t, in)
		other, _ := begin(t, in)
		check := func(packet []byte, u *statesync.Update) {
			if a := r.Ack(); a.None {
				t.Fatalf("decoded, and the ack is %+v", a)
			}
			checkUpdate(t, s.Schemas[0], u)
			if same, err := other.Decode(packet); err != nil || !reflect.DeepEqual(same, u) {
				t.Fatalf("%x: %+v, and without rejected ones before it %+v, %v", packet, u, same, err)
			}
		}
		for packet := range entries.All(in[1:]) {
			if u, err := r.Decode(packet); err == nil {
				check(packet, u)
			}
		}
		if u, err := r.Decode(s.Messages[held]); err == nil {
			check(s.Messages[held], u)
		} else if _, wanted := other.Decode(s.Messages[held]); wanted == nil {
			t.Fatalf("the next packet after rejected ones: %v", err)
		}
	}, Results: func(t testing.TB, in []byte) (line string) {
		if len(in) == 0 {
			return ""
		}
		r, _ := begin(t, in)
		for p := range entries.All(in[1:]) {
			var h corpus.Hash
			u, err := r.Decode(p)
			if err == nil {
				h.Add(int32(u.Tick), int32(len(u.Objects)))
				for _, o := range u.Objects {
					if h.Add(int32(o.ID)); !o.Gone {
						h.Add(int32(o.Generation))
						h.Add(o.Row...)
					}
				}
			}
			line += sessions.Result(err, h)
		}
		return line
	}}
	if steer.Message != nil {
		x.Inputs, x.Generate = 60_000, func(rng *rand.Rand) []byte {
			in := []byte{byte(rng.IntN(history + 1))}
			r, held := begin(f, in)
			for range 1 + rng.IntN(3) {
				m := steer.Message(rng, s.Messages[held], func(m []byte) { _, _ = r.Decode(m) })
				held++
				in = append(in, entries.Of(m, false)...)
			}
			return in
		}
	}
	x.Run(f)
}

// checkUpdate checks that a decoded update has valid objects and inputs, in their order.
func checkUpdate(t testing.TB, s *snapshot.Schema, u *statesync.Update) {
	t.Helper()
	again := s.NewSet()
	if len(u.Objects) > statesync.MaxUpdates || len(u.Inputs) > statesync.MaxTicks || max(u.Tick, -u.Tick) > 1<<53 {
		t.Fatalf("tick %d with %d objects and inputs of %d ticks", u.Tick, len(u.Objects), len(u.Inputs))
	}
	for i, o := range u.Objects {
		if i > 0 && o.ID <= u.Objects[i-1].ID {
			t.Fatalf("object %d after %d", o.ID, u.Objects[i-1].ID)
		}
		if o.Gone {
			continue
		}
		if err := again.Add(o.Object, o.Row); err != nil {
			t.Fatalf("what was decoded is no object: %v", err)
		}
	}
	for _, in := range u.Inputs {
		for i, x := range in.Inputs {
			if i > 0 && in.Inputs[i-1].Player >= x.Player {
				t.Fatalf("inputs of tick %d: %+v", in.Tick, in.Inputs)
			}
		}
	}
}

func TestAckComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := statesync.Ack{None: rapid.Bool().Draw(rt, "none"), Reset: rapid.Bool().Draw(rt, "reset")}
		if !a.None {
			a.Epoch, a.Newest = rapid.Uint8().Draw(rt, "epoch"), rapid.Uint16().Draw(rt, "newest")
			a.Window = rapid.SampledFrom([]uint64{0, 1<<63 - 1, 1<<63 - 2, rapid.Uint64().Draw(rt, "window") >> 1}).Draw(rt, "one")
		}
		b := a.Append([]byte("x"))
		got, rest, err := statesync.ParseAck(append(b[1:], "rest"...))
		if got.Newest == a.Newest&(1<<10-1) { // the short form
			a.Newest = got.Newest
		}
		if err != nil || got != a || string(rest) != "rest" || len(b) > 16 {
			rt.Fatalf("%+v came as %+v, %q, %v", a, got, rest, err)
		}
	})
	whole := statesync.Ack{Newest: 9, Window: 1<<63 - 1}
	if n := len(whole.Append(nil)); n != 2 {
		t.Errorf("an ack without a gap takes %d bytes", n)
	}
}

// TestImpossibleAcks checks that acks of packets that were not sent are counted and have no effect.
func TestImpossibleAcks(t *testing.T) {
	w := newWorld(t, 4, 20)
	s, r := pair(t, w.schema, config)
	set := w.schema.NewSet()
	if err := s.Ack(statesync.Ack{}); !errors.Is(err, snapshot.ErrAck) {
		t.Errorf("an ack before the first packet gave %v", err)
	}
	for tick := range int64(300) {
		w.step()
		w.fill(t, set)
		out, _ := send(t, s, tick, set)
		decode(t, r, out)
		ack := r.Ack()
		_ = s.Ack(ack)
		for _, ahead := range []uint16{1, 2, 400} {
			bad := ack
			bad.Newest += ahead
			if err := s.Ack(bad); !errors.Is(err, snapshot.ErrAck) {
				t.Fatalf("an ack of %d packets ahead gave %v", ahead, err)
			}
		}
	}
	if got := s.Stats(); got.ImpossibleAcks != 901 || got.Starts != 0 {
		t.Errorf("%+v", got)
	}
}

// TestLyingAcks sends acks of packets that were not received. Packets stay within the budget, and
// once the acks are honest, packets decode again soon: an honest ack contradicts the settled ones
// at most 8 packets later, and rejected packets request a restart.
func TestLyingAcks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(rt, "seed"), 6)
		s, r := pair(t, w.schema, config)
		set := w.schema.NewSet()
		const honest = 2*8 + 2
		since := 0 // the last packet that was refused
		for tick := range 160 {
			w.step()
			w.fill(t, set)
			out, _ := send(rt, s, int64(tick), set)
			if len(out) > statesync.DefaultBudget {
				rt.Fatalf("%d bytes", len(out))
			}
			ack := statesync.Ack{
				Reset: w.r.IntN(9) == 0, None: w.r.IntN(9) == 0, Epoch: uint8(w.r.IntN(3)) + r.Ack().Epoch,
				Newest: uint16(tick - w.r.IntN(tick+1)), Window: w.r.Uint64() >> 1,
			}
			if tick < 80 && w.r.IntN(3) == 0 { // most do not come
				_, _ = r.Decode(out)
			}
			if tick >= 80 {
				if _, err := r.Decode(out); err != nil {
					since = tick
				}
				ack = r.Ack()
			}
			_ = s.Ack(ack)
		}
		if since >= 80+honest {
			rt.Fatalf("packet %d is refused, the player is honest since 80: %+v", since, r.Stats())
		}
	})
}
