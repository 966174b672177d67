// Package decrypt decrypts the datagrams of a capture file with a key log.
package decrypt

import (
	"io"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
	"github.com/uplink-rpc/uplink/internal/keylog"
)

// Counts counts the packets of a capture by result.
type Counts struct {
	// Packets is the number of packets. Each is counted in one of the other fields.
	Packets int `json:"packets"`
	// Opened counts decrypted packets, which belong to Sessions sessions.
	Opened   int `json:"opened"`
	Sessions int `json:"sessions"`
	// Plain counts packets that need no decryption: handshakes, and packets that were decrypted
	// earlier.
	Plain int `json:"plain"`
	// NoKey counts packets that look like encrypted datagrams of sessions that are not in the key
	// log.
	NoKey int `json:"no_key"`
	// Damaged counts packets of a session in the key log that do not authenticate.
	Damaged int `json:"damaged"`
	// Cut counts packets that were not recorded completely.
	Cut int `json:"cut"`
	// Other counts packets that are not datagrams of uplink, or have another port.
	Other int `json:"other"`
}

// decrypter processes the packets of one capture.
type decrypter struct {
	opener *keylog.Opener
	port   uint16
	counts Counts
	record []byte
	packet []byte
}

// Run copies a capture from r to w. It replaces each datagram that the sessions' keys decrypt by a
// record of package keylog, and copies everything else unchanged. If port is not 0, only datagrams
// from or to this UDP port are decrypted. The counts cover the copied packets, also if there is an
// error, which is an error of [pcap.Rewrite].
func Run(w io.Writer, r io.Reader, sessions []keylog.Session, port uint16) (Counts, error) {
	d := &decrypter{opener: keylog.NewOpener(sessions), port: port}
	n, err := pcap.Rewrite(w, r, d.edit)
	d.counts.Packets, d.counts.Sessions = n, d.opener.Sessions()
	return d.counts, err
}

// edit returns the packet that replaces p, or nil.
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
	if !ok { // the record would exceed the maximum size of IP, so the datagram is not uplink's
		return nil
	}
	d.packet = packet
	return packet
}
