package budget_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/inspect"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/rerun"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// step is the precision of the measured memory in bytes.
const step = 8 << 20

// file is a capture of any size, made while it is read.
type file struct {
	records func(n int) []record.Body
	n       int
	rest    []byte
	left    int
	most    uint64 // of the heap in use, in bytes
}

func (f *file) Read(b []byte) (int, error) {
	if f.left <= 0 {
		return 0, io.EOF
	}
	if len(f.rest) == 0 {
		f.rest = f.rest[:0]
		for _, body := range f.records(f.n) {
			f.rest = capture.AppendRecord(f.rest, 0, body)
		}
		f.n++
	}
	n := copy(b, f.rest)
	f.rest = f.rest[n:]
	f.measure()
	f.left -= n
	return n, nil
}

// measure updates most, if the heap grew by [step]. It collects garbage, of which there is more on
// a busy machine.
func (f *file) measure() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc < f.most+step {
		return
	}
	runtime.GC()
	runtime.ReadMemStats(&m)
	f.most = max(f.most, m.HeapAlloc)
}

func schemaJSON(t *testing.T, fields ...schema.Field) []byte {
	t.Helper()
	s, err := schema.New("Move", 60, fields)
	uplinktest.Must(t, err)
	b, err := s.AppendJSON(nil)
	uplinktest.Must(t, err)
	return b
}

// TestBombs reads captures of which all that is kept is about one thing. Each takes no more than
// the budget and what the
// reader has, or the error names the limit.
func TestBombs(t *testing.T) {
	const large, many = 64 << 20, 4 << 20 // files of large records, and of many
	small := schemaJSON(t, schema.Field{Name: "A", Kind: schema.KindBool})
	wide := schemaJSON(t, schema.Field{Name: "A", Kind: schema.KindScalar, Count: 1000, Resolution: 1})
	encoded := prior.Generic().Append(nil)
	binary.LittleEndian.PutUint16(encoded[len(encoded)-2:], 0) // cannot be parsed, once it is read
	long := strings.Repeat("x", 1<<20)
	bind := func(n int, b record.Bound) []record.Body {
		b.RateHz, b.Ring, b.PeerRing, b.Codec = 60, rpcdelta.MaxRing, rpcdelta.MaxRing, rpcdelta.Adaptive
		if b.Schema == 0 {
			b.Schema = 1
		}
		player := uint64(n) + 1
		b.Player = player
		return []record.Body{
			&record.Opened{Player: player}, &b, &record.Datagram{Player: player, Body: []byte{0x80, 0, 0, 0, 0, 1}},
			&record.Decoded{Player: player, RPC: b.RPC, Kind: rpcdelta.Reset, Frames: 1},
		}
	}
	for _, c := range []struct {
		name    string
		size    int
		schema  []byte
		records func(n int) []record.Body
	}{
		{"sessions", 16 << 20, small, func(n int) []record.Body {
			return []record.Body{&record.Opened{Player: uint64(n) + 1, Addr: netip.MustParseAddrPort("[2001:db8::1]:7777"), Suite: "aes128gcm"}, &record.Closed{Player: uint64(n) + 1}}
		}},
		{"open sessions", 16 << 20, small, func(n int) []record.Body { return []record.Body{&record.Opened{Player: uint64(n) + 1}} }},
		{"causes", large, small, func(n int) []record.Body { return []record.Body{&record.Closed{Player: uint64(n) + 1, Cause: long}} }},
		{"suites", large, small, func(n int) []record.Body { return []record.Body{&record.Opened{Player: uint64(n) + 1, Suite: long}} }},
		{"reasons", large, small, func(n int) []record.Body {
			return []record.Body{&record.Dropped{Player: 1, RPC: record.NoRPC, Reason: fmt.Sprint(n, long[:1000])}}
		}},
		{"counts", large, small, func(n int) []record.Body {
			return []record.Body{&record.Counts{Drops: []record.Count{{Reason: fmt.Sprint(n, long[:1000]), N: 1}}}}
		}},
		{"schemas", many, small, func(n int) []record.Body { return []record.Body{&record.Schema{ID: uint64(n), JSON: wide}} }},
		{"large schemas", large, small, func(n int) []record.Body {
			return []record.Body{&record.Schema{ID: uint64(n), JSON: []byte(`{"fields":[{}` + strings.Repeat(",{}", 60_000) + "]}")}}
		}},
		{"priors", large, small, func(n int) []record.Body { return []record.Body{&record.Prior{Hash: uint64(n), File: encoded}} }},
		{"streams", many, small, func(n int) []record.Body {
			return []record.Body{&record.Opened{Player: uint64(n/250) + 1}, &record.Bound{Player: uint64(n/250) + 1, RPC: n % 250, Schema: 1, RateHz: 60, Codec: rpcdelta.RLE}}
		}},
		{"decoders", many, small, func(n int) []record.Body { return bind(n, record.Bound{}) }},
		{"wide decoders", large, wide, func(n int) []record.Body { return bind(n, record.Bound{}) }},
		{"wide decoders with states", large, wide, func(n int) []record.Body { return bind(n, record.Bound{DeliverLate: true}) }},
		{"rates", many, wide, func(n int) []record.Body {
			return []record.Body{&record.Opened{Player: 1}, &record.Bound{Player: 1, Schema: 1, RateHz: 1 + math.Mod(float64(n)/100, 900), Codec: rpcdelta.Adaptive}}
		}},
		{"datagrams", large, small, func(n int) []record.Body {
			return []record.Body{&record.Opened{Player: uint64(n) + 1}, &record.Datagram{Player: uint64(n) + 1, Body: append([]byte{0x80}, long[:60_000]...)}}
		}},
		{"small datagrams", many, small, func(int) []record.Body {
			return []record.Body{&record.Datagram{Player: 1, Body: []byte{0x80, 1}}, &record.Decoded{Player: 1, Frames: 1}}
		}},
		{"messages", many, small, func(int) []record.Body { return []record.Body{&record.Message{Player: 1, Body: []byte{0xc4}}} }},
		{"large records", large, small, func(int) []record.Body {
			return []record.Body{&record.Message{Player: 1, Body: make([]byte, prior.MaxSize)}}
		}},
		{"random", many, small, func(n int) []record.Body {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			return bind(r.IntN(1000), record.Bound{RPC: r.IntN(256), Reliable: n%2 == 0})
		}},
	} {
		for way, read := range map[string]func(io.Reader) error{
			"inspect": func(r io.Reader) error {
				_, _, err := inspect.Run(r, inspect.Options{})
				return err
			},
			"replay-capture": func(r io.Reader) error {
				plan, err := rerun.Load(r, 0, 0)
				runtime.KeepAlive(plan)
				return err
			},
		} {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				if testing.Short() && c.size == large {
					t.Skip("takes seconds")
				}
				f := &file{left: c.size, records: c.records}
				f.rest = capture.AppendRecord(capture.AppendHeader(nil), 0, &record.Start{})
				f.rest = capture.AppendRecord(f.rest, 0, &record.Schema{ID: 1, JSON: c.schema})
				f.rest = capture.AppendRecord(f.rest, 0, &record.Opened{Player: 1})
				f.rest = capture.AppendRecord(f.rest, 0, &record.Bound{Player: 1, Schema: 1, RateHz: 60, Codec: rpcdelta.RLE})
				f.rest = append([]byte(nil), f.rest...)
				runtime.GC()
				var before runtime.MemStats
				runtime.ReadMemStats(&before)
				err := read(f)
				most := int64(f.most) - int64(before.HeapAlloc)
				t.Logf("%.1f MiB after %d of %d, %v", float64(most)/(1<<20), c.size-f.left, c.size, err)
				if most+step > 48<<20 {
					t.Errorf("%d bytes in use, want at most 48 MiB", most)
				}
			})
		}
	}
}

// TestBudget acquires and releases memory.
func TestBudget(t *testing.T) {
	b := budget.New(1000)
	if err := b.TakeMost(751); err == nil {
		t.Error("nothing is left for the rest")
	}
	if err := b.TakeMost(750); err != nil {
		t.Error(err)
	}
	if err := b.Take(251); err == nil || !strings.Contains(err.Error(), "memory limit of 1000 bytes; --memory") {
		t.Errorf("%v", err)
	}
	if err := b.Take(250); err != nil {
		t.Error(err)
	}
	b.Return(100)
	if err := b.Take(100); err != nil {
		t.Error(err)
	}
}
