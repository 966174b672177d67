package inspect

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"testing"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// FuzzRun inspects files whose records are whole, but say anything: one after the other, each after
// its length of 16 bits.
func FuzzRun(f *testing.F) {
	for _, name := range []string{"testdata/adaptive.uplink", "testdata/rle.uplink"} {
		data, err := os.ReadFile(name)
		uplinktest.Must(f, err)
		f.Add(bare(f, data), uint16(20))
	}
	f.Fuzz(func(t *testing.T, records []byte, explain uint16) {
		sum, _, err := Run(bytes.NewReader(dress(records)), Options{Explain: int(explain), Each: func(Row) {}})
		if sum == nil {
			if err == nil {
				t.Fatal("neither a summary nor an error")
			}
			return
		}
		var b bytes.Buffer
		uplinktest.Must(t, sum.Write(&b))
		again := uint64(0)
		for _, r := range sum.RPCs {
			again += r.Payloads
		}
		if c := sum.Check; c.Same+c.Differ+c.Before+c.AfterLoss+c.Broken > uint64(sum.Records) || again > uint64(sum.Records) {
			t.Fatalf("%+v of %d records", sum.Check, sum.Records)
		}
	})
}

// bare returns the file's records without their frames.
func bare(t testing.TB, data []byte) (out []byte) {
	t.Helper()
	for data = data[8:]; len(data) > 0; {
		length, n := binary.Uvarint(data)
		out = binary.LittleEndian.AppendUint16(out, uint16(length))
		out = append(out, data[n:n+int(length)]...)
		data = data[n+int(length)+4:]
	}
	return out
}

// dress makes a file of bare records.
func dress(records []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	out := capture.AppendHeader(nil)
	for len(records) >= 2 {
		length := min(int(binary.LittleEndian.Uint16(records)), len(records)-2)
		begin := len(out)
		out = binary.AppendUvarint(out, uint64(length))
		out = append(out, records[2:2+length]...)
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[begin:], table))
		records = records[2+length:]
	}
	return out
}

// TestSeeds: the seeds of the fuzz target are captures without differences; -update writes them.
func TestSeeds(t *testing.T) {
	for name, c := range map[string]scenario{
		"testdata/adaptive.uplink": {frames: 20, clients: 1, bind: client.BindConfig{Delay: uplinktest.Wait(1, 60)}},
		"testdata/rle.uplink":      {frames: 12, clients: 1, client: client.Config{Tuning: client.Tuning{Codec: rpcdelta.RLE}}},
	} {
		if *update {
			data := c.data(t)
			uplinktest.Must(t, os.WriteFile(name, data, 0o600))
		}
		data, err := os.ReadFile(name)
		uplinktest.Must(t, err)
		sum, _, err := Run(bytes.NewReader(dress(bare(t, data))), Options{})
		uplinktest.Must(t, err)
		if sum.Check.Same < 10 || sum.Check.Differ != 0 {
			t.Errorf("%s: %+v", name, sum.Check)
		}
	}
}

// TestLimits: files that are all about streams, schemas and sessions take no more memory than there
// is for them.
func TestLimits(t *testing.T) {
	big, err := schema.New("Big", 60, []schema.Field{{Name: "A", Kind: schema.KindScalar, Count: 1000, Resolution: 1}})
	uplinktest.Must(t, err)
	json, err := big.AppendJSON(nil)
	uplinktest.Must(t, err)
	file := capture.AppendRecord(capture.AppendHeader(nil), 0, &record.Start{})
	file = capture.AppendRecord(file, 0, &record.Schema{ID: 1, JSON: json})
	for n := range uint64(2000) {
		file = capture.AppendRecord(file, 0, &record.Bound{Player: n, Schema: 1, RateHz: 60, Ring: rpcdelta.MaxRing, PeerRing: rpcdelta.MaxRing, Codec: rpcdelta.Adaptive})
		file = capture.AppendRecord(file, 0, &record.Datagram{Player: n, Body: []byte{0x80, 0, 0, 0, 0, 1}})
		file = capture.AppendRecord(file, 0, &record.Decoded{Player: n, Kind: rpcdelta.Reset, Frames: 1})
	}
	for n := range uint64(300) {
		file = capture.AppendRecord(file, 0, &record.Bound{Player: n, RPC: 1, Schema: 1, RateHz: 1 + float64(n), Codec: rpcdelta.Adaptive})
	}
	for _, hz := range []float64{math.NaN(), math.Inf(1), -1} {
		file = capture.AppendRecord(file, 0, &record.Bound{Player: 1, RPC: 2, Schema: 1, RateHz: hz})
	}
	file = capture.AppendRecord(file, 0, &record.End{})
	sum, _, err := Run(bytes.NewReader(file), Options{})
	uplinktest.Must(t, err)
	if c := sum.Check; c.Broken == 0 || c.Broken == 2000 || c.Differ+c.Broken != 2000 {
		t.Errorf("%+v", c)
	}
}
