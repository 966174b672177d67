// Package capture writes the data that a dedicated server receives, sends and decodes to a file,
// which can be attached to a bug report. The tool uplink inspects and replays such files.
//
//	w, err := capture.Create("out.uplink", capture.Config{})
//	...
//	srv, err := ds.Listen(addr, ds.Config{Hooks: ds.Hooks{Tap: w.Tap()}})
//	...
//	srv.Close()
//	err = w.Close()
package capture

import (
	"log/slog"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/capture"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// Config configures a [Writer]. The zero value of each field means its default.
type Config struct {
	// MaxBytes is the maximum size of a file, at least 64 KiB; default 256 MiB. When a file is
	// full, the next file of the series starts: after out.uplink out.1.uplink, out.2.uplink and so
	// on.
	MaxBytes int64
	// Keep is the number of files that are kept, the newest ones; default 4.
	Keep int
	// Overwrite makes Create remove all files of an earlier series at the same path. Otherwise
	// Create fails if there is one.
	Overwrite bool
	// QueueBytes is the size of the queue in memory, at least 64 KiB; default 16 MiB. Records that
	// do not fit are lost, and the file states how many.
	QueueBytes int
	// Logger logs each file and the first error of writing. After that error all records are lost.
	// If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

// Writer writes a capture. Records are copied to a queue in memory, which a goroutine writes to the
// files: a server never waits for the disk. The methods are safe for concurrent use.
type Writer struct{ w *capture.Writer }

// Create starts a series of files at path, each with mode 0600. If a file of an earlier series
// exists, the error wraps fs.ErrExist, unless cfg.Overwrite is set. Symbolic links are not
// followed. Close ends the series.
func Create(path string, cfg Config) (*Writer, error) {
	w, err := capture.Create(path, capture.Config(cfg))
	if err != nil {
		return nil, err
	}
	return &Writer{w}, nil
}

// Close writes the queued records and ends the file. It returns the first error of writing. It may
// be called more than once.
func (w *Writer) Close() error { return w.w.Close() }

// Stats counts the output of a writer.
type Stats struct {
	// Records is the number of records written. Lost is the number that may be missing because the
	// queue was full or a file could not be written.
	Records, Lost uint64
	// Bytes and Files are the size and the number of the files written.
	Bytes, Files uint64
}

// Stats returns the counts so far.
func (w *Writer) Stats() Stats { return Stats(w.w.Stats()) }

// Tap returns the tap of a server, for ds.Hooks. Closing the server does not close w.
func (w *Writer) Tap() ds.Tap { return server{w.w} }

type server struct{ w *capture.Writer }

func (s server) Joined(p *ds.Player, suite transport.Suite) ds.PlayerTap {
	return &player{s.w.Open(record.Opened{
		Session: p.ID(), Client: p.ClientID(), Addr: p.Addr(), Suite: suite.String(), AEADOverhead: suite.Overhead(),
	})}
}

func (s server) Counted(st transport.ListenerStats) {
	var c record.Counts
	for reason, n := range st.Dropped.All() {
		if n != 0 {
			c.Drops = append(c.Drops, record.Count{Reason: reason, N: n})
		}
	}
	s.w.Counts(c)
}

func (s server) Resets() uint64 { return s.w.Resets() }

type player struct{ s *capture.Session }

func (p *player) Carried(c transport.TapEvent) {
	if c.Reliable {
		p.s.Message(c.At, record.Message{Sent: c.Sent, Body: c.Body})
		return
	}
	p.s.Datagram(c.At, record.Datagram{Sent: c.Sent, Number: c.Number, Size: c.Size, Body: c.Body})
}

func (p *player) Bound(b ds.Binding) {
	p.s.Bound(record.Bound{
		RPC: b.RPC, RateHz: b.RateHz, PerTick: b.PerTick, PeerRing: b.PeerRing, Frames: b.Frames, Ring: b.Ring, Codec: b.Codec, Reliable: b.Reliable, DeliverLate: b.DeliverLate,
		Deadline: b.Deadline, Batch: b.Batch,
	}, b.Schema, b.Prior)
}

func (p *player) Decoded(at time.Time, rpc int, frames []rpcdelta.Delivery) {
	p.s.Decoded(at, rpc, frames)
}

func (p *player) Dropped(at time.Time, rpc int, d ds.Drop, decoder bool) {
	p.s.Dropped(at, record.Dropped{RPC: max(rpc, record.NoRPC), Reason: d.String(), Decoder: decoder})
}

func (p *player) Withheld(at time.Time, rpc int, seq uint64, d ds.Drop) {
	p.s.Withheld(at, record.Withheld{RPC: rpc, Seq: seq, Reason: d.String()})
}

func (p *player) Left(err error) {
	cause := ""
	if err != nil {
		cause = err.Error()
	}
	p.s.Closed(cause)
}
