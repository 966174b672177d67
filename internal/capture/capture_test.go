package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

var must = uplinktest.Must

func testSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.New("Move", 60, []schema.Field{
		{Name: "Location", Kind: schema.KindVec3, Resolution: 0.1}, {Name: "Name", Kind: schema.KindBytes, Max: new(8.0)},
	})
	must(t, err)
	return s
}

// records returns all readable records, with copies of their bytes, and the error after them.
func records(t testing.TB, data []byte) (all []capture.Record, err error) {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for {
		rec, err := r.Next()
		if err != nil {
			return all, err
		}
		rec.Body, err = record.Parse(rec.Body.Append(nil))
		must(t, err)
		all = append(all, rec)
	}
}

// bodies returns the bodies of a complete file.
func bodies(t testing.TB, path string) (out []record.Body) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	all, err := records(t, data)
	if !errors.Is(err, io.EOF) {
		t.Fatalf("%s: %v", path, err)
	}
	for _, r := range all {
		out = append(out, r.Body)
	}
	return out
}

var opened = record.Opened{Session: 7, Client: 8, Addr: netip.MustParseAddrPort("[::1]:9"), Suite: "AES", AEADOverhead: 16}

// sendDatagrams records n datagrams of 1,000 bytes.
func sendDatagrams(p *capture.Session, n int) {
	for range n {
		p.Datagram(time.Now(), record.Datagram{Size: 1, Body: make([]byte, 1000)})
	}
}

// write creates a file with each type of record, and returns the records after the start.
func write(t testing.TB, path string) []record.Body {
	t.Helper()
	w, err := capture.Create(path, capture.Config{})
	must(t, err)
	s := testSchema(t)
	json, err := s.AppendJSON(nil)
	must(t, err)
	now := time.Now()
	p := w.Open(opened)
	bound := record.Bound{RPC: 3, RateHz: 66.5, PeerRing: 64, Frames: 2, Ring: 128, Codec: rpcdelta.Adaptive, Reliable: true, DeliverLate: true, Deadline: 9, Batch: 2}
	p.Bound(bound, s, prior.Generic())
	p.Bound(bound, s, nil)
	data := record.Datagram{Number: 1 << 40, Size: 1200, Body: []byte("body")}
	p.Datagram(now, data)
	p.Decoded(now, 3, []rpcdelta.Delivery{{Info: rpcdelta.Info{Seq: 1 << 33, Kind: rpcdelta.Delta}, Frame: s.NewFrame()}})
	ack := record.Datagram{Sent: true, Number: 2, Size: 33, Body: []byte{0xc1}}
	p.Datagram(now, ack)
	p.Message(now, record.Message{Body: []byte("in")})
	p.Message(now, record.Message{Sent: true, Body: []byte("out")})
	p.Dropped(now, record.Dropped{RPC: record.NoRPC, Reason: "malformed"})
	p.Dropped(now, record.Dropped{RPC: 255, Reason: "late", Decoder: true})
	p.Withheld(now, record.Withheld{RPC: 3, Seq: 9, Reason: "limited"})
	counts := record.Counts{Drops: []record.Count{{Reason: "cookie", N: 5}}}
	w.Counts(counts)
	p.Closed("timeout")
	must(t, w.Close())
	must(t, w.Close())

	opened := opened
	opened.Player = 1
	bound.Player, bound.Schema, bound.Prior = 1, 1, prior.Generic().Hash()
	again := bound
	again.Prior = 0
	data.Player, ack.Player = 1, 1
	frames := []rpcdelta.Delivery{{Info: rpcdelta.Info{Seq: 5, Kind: rpcdelta.Delta}, Frame: s.NewFrame()}}
	return []record.Body{
		&opened, &record.Schema{ID: 1, JSON: json}, &bound, &again, &data,
		&record.Decoded{Player: 1, RPC: 3, Seq: 1 << 33, Frames: 1, Kind: rpcdelta.Delta, Hash: capture.Hash(frames)},
		&ack, &record.Message{Player: 1, Body: []byte("in")}, &record.Message{Player: 1, Sent: true, Body: []byte("out")},
		&record.Dropped{Player: 1, RPC: -1, Reason: "malformed"}, &record.Dropped{Player: 1, RPC: 255, Reason: "late", Decoder: true},
		&record.Withheld{Player: 1, RPC: 3, Seq: 9, Reason: "limited"}, &counts,
		&record.Closed{Player: 1, Cause: "timeout"}, &record.End{},
	}
}

// TestRotate writes several files. Each file of the series is readable alone, and the oldest ones
// are removed.
func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.uplink")
	const limit = 64 << 10
	w, err := capture.Create(path, capture.Config{MaxBytes: limit, Keep: 2})
	must(t, err)
	p, q := w.Open(opened), w.Open(opened)
	s := testSchema(t)
	p.Bound(record.Bound{RPC: 1, Codec: rpcdelta.RLE}, s, nil)
	q.Bound(record.Bound{RPC: 2, Codec: rpcdelta.RLE}, s, nil)
	body := make([]byte, 1000)
	for i := range uint64(250) {
		p.Datagram(time.Now(), record.Datagram{Number: i, Size: 1019, Body: body})
		if i == 150 {
			q.Closed("")
		}
	}
	must(t, w.Close())
	st := w.Stats()
	if st.Lost != 0 || st.Files < 4 || w.Resets() != st.Files-1 {
		t.Fatalf("%+v, %d resets", st, w.Resets())
	}
	last := int(st.Files) - 1
	for i := range last + 1 {
		info, err := os.Stat(capture.FileName(path, i))
		if (err == nil) != (i > last-2) || err == nil && info.Size() > limit {
			t.Errorf("file %d: %v, %v", i, info, err)
		}
		if err == nil && runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("file %d is for others to read: %v", i, info.Mode())
		}
	}
	next := uint64(0)
	for i := last - 1; i <= last; i++ {
		all := bodies(t, capture.FileName(path, i))
		if start := all[0].(*record.Start); start.Index != i {
			t.Errorf("%+v in file %d", start, i)
		}
		if end := all[len(all)-1].(*record.End); end.More != (i < last) {
			t.Errorf("%+v in file %d of %d", end, i, last)
		}
		known := ""
		for _, b := range all[1 : len(all)-1] {
			switch b := b.(type) {
			case *record.Schema:
				known += "s"
			case *record.Opened:
				known += fmt.Sprint("o", b.Player, b.Again)
			case *record.Bound:
				known += fmt.Sprint("b", b.Player, b.RPC, b.Again)
			case *record.Datagram:
				if next != 0 && b.Number != next {
					t.Fatalf("datagram %d, want %d", b.Number, next)
				}
				next = b.Number + 1
			}
		}
		want := "so1 trueb1 1 trueo2 trueb2 2 true"
		if i == last {
			want = "so1 trueb1 1 true"
		}
		if known != want {
			t.Errorf("file %d begins with %s, want %s", i, known, want)
		}
	}
	if next != 250 {
		t.Errorf("%d datagrams, want 250", next)
	}
}

// TestFull fills the queue. Lost records are counted at their position in the file.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.uplink")
	w, err := capture.Create(path, capture.Config{QueueBytes: 64 << 10})
	must(t, err)
	p := w.Open(opened)
	const each, goroutines = 4000, 4
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() { sendDatagrams(p, each) })
	}
	all.Wait()
	must(t, w.Close())
	got, lost := uint64(0), uint64(0)
	for _, b := range bodies(t, path) {
		switch b := b.(type) {
		case *record.Datagram:
			got++
		case *record.Lost:
			lost += b.Records
		}
	}
	if lost == 0 || got+lost != each*goroutines || w.Stats().Lost != lost {
		t.Errorf("%d came and %d are said to be lost, of %d; %+v", got, lost, each*goroutines, w.Stats())
	}
}

// TestCannotWrite prevents the creation of the second file, by a directory or a symbolic link.
// Close returns the error, later records count as lost, and the first file remains.
func TestCannotWrite(t *testing.T) {
	for name, prevent := range map[string]func(name, target string) error{
		"directory": func(name, _ string) error { return os.Mkdir(name, 0o700) },
		"link":      func(name, target string) error { return os.Symlink(target, name) },
	} {
		if name == "link" && runtime.GOOS == "windows" {
			continue // links need privileges
		}
		path, target := filepath.Join(t.TempDir(), "out.uplink"), filepath.Join(t.TempDir(), "target")
		w, err := capture.Create(path, capture.Config{MaxBytes: 64 << 10})
		must(t, err)
		must(t, prevent(capture.FileName(path, 1), target))
		sendDatagrams(w.Open(opened), 100)
		if err := w.Close(); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "out.1.uplink") {
			t.Errorf("%s: %v", name, err)
		}
		datagrams := len(bodies(t, path)) - 3 // start, opened, end
		if lost := w.Stats().Lost; datagrams < 50 || uint64(100-datagrams) != lost {
			t.Errorf("%s: %d datagrams, %d lost", name, datagrams, lost)
		}
		if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the target was written: %v", name, err)
		}
		if _, err := capture.Create(filepath.Join(path, "x"), capture.Config{}); err == nil {
			t.Error("a file within a file")
		}
	}
}

// fullDisk is a file on a disk with room bytes.
type fullDisk struct {
	bytes.Buffer
	room int
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n, err := len(b), error(nil)
	if n > d.room {
		n, err = d.room, syscall.ENOSPC
	}
	d.room -= n
	d.Buffer.Write(b[:n])
	return n, err
}

func (d *fullDisk) Close() error { return nil }

// TestFullDisk fills the disk. The error is logged once and immediately, each record is in the file
// or counted as lost, and the file is readable up to its end.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		disk := &fullDisk{room: 10_000}
		w, err := capture.CreateOn("out.uplink", capture.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))},
			func(string) (io.WriteCloser, error) { return disk, nil })
		must(t, err)
		p := w.Open(opened)
		const datagrams = 100
		for range datagrams {
			p.Datagram(time.Now(), record.Datagram{Size: 1, Body: make([]byte, 1000)})
			time.Sleep(150 * time.Millisecond)
			synctest.Wait()
			if lost, logged := w.Stats().Lost != 0, strings.Count(log.String(), "level=ERROR"); lost != (logged == 1) {
				t.Fatalf("%+v, %d errors are logged: %s", w.Stats(), logged, &log)
			}
		}
		if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v", err)
		}
		all, err := records(t, disk.Bytes())
		if !errors.Is(err, capture.ErrCut) {
			t.Errorf("%v", err)
		}
		const others = 2 // start and opened
		if n := len(all) - others; n != 9 || w.Stats().Lost != uint64(datagrams-n) {
			t.Errorf("%d datagrams, %+v", n, w.Stats())
		}
	})
}

// TestFullBuffer checks that the first error also loses the records that were not flushed.
func TestFullBuffer(t *testing.T) {
	disk := &fullDisk{room: 10_000}
	w, err := capture.CreateOn("out.uplink", capture.Config{}, func(string) (io.WriteCloser, error) { return disk, nil })
	must(t, err)
	p := w.Open(opened)
	const datagrams = 50 // fewer than the queue asks to be written for
	sendDatagrams(p, datagrams)
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	all, _ := records(t, disk.Bytes())
	if lost, n := w.Stats().Lost, uint64(len(all)-2); lost < datagrams-n || lost > datagrams+1 {
		t.Errorf("%d datagrams can be read, %d count as lost", n, lost)
	}
}

// TestExisting creates a series at a path with existing files.
func TestExisting(t *testing.T) {
	for _, name := range []string{"out.uplink", "out.7.uplink"} {
		dir := t.TempDir()
		path, old := filepath.Join(dir, "out.uplink"), filepath.Join(dir, name)
		must(t, os.WriteFile(old, []byte("old"), 0o600))
		must(t, os.Chmod(old, 0o666))
		others := []string{"out.x.uplink", "out.07.uplink", "out.0.uplink", "out.7.uplinks", "out.uplink.7", "outer.7.uplink"}
		for _, other := range others {
			must(t, os.WriteFile(filepath.Join(dir, other), []byte("other"), 0o600))
		}
		_, err := capture.Create(path, capture.Config{})
		if got, readErr := os.ReadFile(old); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), name) || readErr != nil || string(got) != "old" {
			t.Errorf("%s: %v; %q, %v", name, err, got, readErr)
		}
		w, err := capture.Create(path, capture.Config{Overwrite: true})
		must(t, err)
		must(t, w.Close())
		bodies(t, path)
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if _, err := os.Stat(old); name != "out.uplink" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of the earlier row is still there: %v", name, err)
		}
		for _, other := range others {
			if _, err := os.Stat(filepath.Join(dir, other)); err != nil {
				t.Errorf("%s: %v", other, err)
			}
		}
	}
}

// TestLink puts a symbolic link at the path of the first file.
func TestLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need privileges")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "out.uplink")
	must(t, os.Symlink(filepath.Join(dir, "target"), path))
	for _, overwrite := range []bool{false, true} {
		if _, err := capture.Create(path, capture.Config{Overwrite: overwrite}); err == nil {
			t.Errorf("a link is followed, overwrite: %v", overwrite)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []capture.Config{{MaxBytes: 1}, {Keep: -1}, {QueueBytes: 1}} {
		if _, err := capture.Create(filepath.Join(t.TempDir(), "out.uplink"), c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

func BenchmarkDatagram(b *testing.B) {
	w, err := capture.Create(filepath.Join(b.TempDir(), "out.uplink"), capture.Config{})
	must(b, err)
	p := w.Open(opened)
	body := make([]byte, 30)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		p.Datagram(now, record.Datagram{Number: 1, Size: 49, Body: body})
	}
	b.ReportMetric(float64(w.Stats().Lost)/float64(b.N), "lost/op")
	must(b, w.Close())
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.uplink")
	before := time.Now()
	want := write(t, path)
	got := bodies(t, path)
	start, ok := got[0].(*record.Start)
	if !ok || start.Index != 0 || start.Wall.Before(before.Truncate(0)) || start.Wall.After(time.Now()) {
		t.Errorf("start %+v", got[0])
	}
	if got = got[1:]; !reflect.DeepEqual(got, want) {
		for i := range max(len(got), len(want)) {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestCut truncates a file at each byte, and changes each byte. All records before are readable,
// and the error has the position.
func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.uplink")
	write(t, path)
	data, err := os.ReadFile(path)
	must(t, err)
	whole, err := records(t, data)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	check := func(what string, n int, data []byte, want error) {
		t.Helper()
		got, err := records(t, data)
		good := 0
		for good < len(whole) && whole[good].Offset+int64(whole[good].Size) <= int64(n) {
			good++
		}
		var at *capture.FileError
		if !errors.Is(err, want) && want != nil || !errors.As(err, &at) {
			t.Fatalf("%s at %d: %v, want %v", what, n, err, want)
		}
		if at.Offset > int64(n) || good < len(whole) && good > 0 && at.Offset != whole[good].Offset || good > 0 && !reflect.DeepEqual(got, whole[:good]) {
			t.Fatalf("%s at %d: %d records and %v, want %d", what, n, len(got), err, good)
		}
	}
	for n := range len(data) {
		want := capture.ErrCut
		if n == 0 {
			want = capture.ErrForeign
		}
		check("cut", n, data[:n], want)
		changed := bytes.Clone(data)
		changed[n] ^= 0x41
		check("changed", n, changed, nil)
	}
	check("more", len(data), append(bytes.Clone(data), 0), capture.ErrDamaged)
}

func FuzzReader(f *testing.F) {
	path := filepath.Join(f.TempDir(), "out.uplink")
	write(f, path)
	data, err := os.ReadFile(path)
	must(f, err)
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := records(t, data)
		end := int64(0)
		for i, r := range all {
			if r.Body == nil || r.Number != i+1 || i > 0 && r.Offset != end {
				t.Fatalf("%d: %+v", i, r)
			}
			end = r.Offset + int64(r.Size)
		}
		if !errors.Is(err, io.EOF) && !errors.As(err, new(*capture.FileError)) || end > int64(len(data)) {
			t.Fatalf("%v after %d of %d bytes", err, end, len(data))
		}
	})
}
