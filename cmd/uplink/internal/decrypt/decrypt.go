// Package decrypt opens the datagrams of a capture file with a key log.
package decrypt

import (
	"io"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/internal/keylog"
)

// Counts counts the packets of a capture by result.
type Counts struct {
	// Packets is how many there were. Each is counted once below.
	Packets int `json:"packets"`
	// Opened were opened; they are of so many Sessions.
	Opened   int `json:"opened"`
	Sessions int `json:"sessions"`
	// Plain need no opening: those of handshakes, and those that were opened before.
	Plain int `json:"plain"`
	// NoKey look like sealed datagrams of sessions that the key log does not have.
	NoKey int `json:"no_key"`
	// Damaged are of a session that the key log has, and do not open.
	Damaged int `json:"damaged"`
	// Cut were not recorded whole.
	Cut int `json:"cut"`
	// Other are no datagrams of uplink, or of another port.
	Other int `json:"other"`
}

// decrypter is what goes over the packets of one capture.
type decrypter struct {
	opener *keylog.Opener
	port   uint16
	counts Counts
	record []byte
	packet []byte
}

// Run copies a capture from r to w with the datagrams opened that the sessions' keys open, each as
// a record of package keylog; all else is as it was. Only datagrams from or to the UDP port are
// looked at, if it is not 0. The counts are of what was copied, also with an error, which is one of
// [pcap.Rewrite].
func Run(w io.Writer, r io.Reader, sessions []keylog.Session, port uint16) (Counts, error) {
	d := &decrypter{opener: keylog.NewOpener(sessions), port: port}
	n, err := pcap.Rewrite(w, r, d.edit)
	d.counts.Packets, d.counts.Sessions = n, d.opener.Sessions()
	return d.counts, err
}

// edit returns the packet that takes the place of one, or nil.
func (d *decrypter) edit(p *pcap.Packet) []byte {
	g, ok := p.UDP()
	if !ok || d.port != 0 && g.From.Port() != d.port && g.To.Port() != d.port {
		d.counts.Other++
		return nil
	}
	if g.Cut {
		d.counts.Cut++
		return nil
	}
	record, verdict := d.opener.Open(d.record[:0], g.From, g.To, g.Payload)
	c := &d.counts
	switch verdict {
	case keylog.Opened:
		c.Opened++
	case keylog.Plain:
		c.Plain++
	case keylog.NoSession:
		c.NoKey++
	case keylog.Damaged:
		c.Damaged++
	default:
		c.Other++
	}
	if verdict != keylog.Opened {
		return nil
	}
	d.record = record
	packet, ok := g.Replace(d.packet[:0], record)
	if !ok { // a datagram of the longest size that IP has is none of ours
		return nil
	}
	d.packet = packet
	return packet
}
