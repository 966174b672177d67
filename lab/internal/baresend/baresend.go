// Package baresend only encrypts datagrams and sends them in batches. No server with a key for each
// player can send the same datagrams at a lower cost.
//
// The encryption is that of the transport's default suite, AES-128-GCM with a tag of 16 bytes. A
// header of 2 bytes precedes the ciphertext and is authenticated.
package baresend

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"net/netip"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/transport"
)

// batch is the number of datagrams that are written together, as in an [endpoint.Listener].
const batch = 256

// Sender sends datagrams to peers. It is not safe for concurrent use.
type Sender struct {
	conn    transport.BatchConn
	peers   []peer
	nonce   [12]byte
	waiting []transport.Datagram // queue, with the memory of a full batch
}

type peer struct {
	addr   netip.AddrPort
	gcm    cipher.AEAD
	number uint64 // number of the next datagram
}

// New returns a sender to these addresses. Each address has its own key.
func New(conn transport.BatchConn, to []netip.AddrPort) (*Sender, error) {
	s := &Sender{conn: conn, waiting: make([]transport.Datagram, 0, batch)}
	for i := range s.waiting[:batch] {
		s.waiting[:batch][i].Buf = make([]byte, 0, transport.MaxPayload+endpoint.HeaderSize+16)
	}
	for i, addr := range to {
		var key [16]byte
		binary.LittleEndian.PutUint64(key[:], uint64(i))
		block, err := aes.NewCipher(key[:])
		if err != nil {
			return nil, err
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		s.peers = append(s.peers, peer{addr: addr, gcm: gcm})
	}
	return s, nil
}

// Add encrypts a payload of at most [transport.MaxPayload] bytes for a peer, by index, and queues
// the datagram. It writes the queue when it is full.
func (s *Sender) Add(to int, payload []byte) error {
	p := &s.peers[to]
	n := len(s.waiting)
	s.waiting = s.waiting[:n+1]
	d := &s.waiting[n]
	header := binary.BigEndian.AppendUint16(d.Buf[:0], uint16(p.number))
	binary.BigEndian.PutUint64(s.nonce[4:], p.number)
	p.number++
	d.Buf = p.gcm.Seal(header, s.nonce[:], payload, header)
	d.N, d.Addr = len(d.Buf), p.addr
	if n+1 == batch {
		return s.Flush()
	}
	return nil
}

// Flush writes the queue.
func (s *Sender) Flush() error {
	_, err := s.conn.WriteBatch(s.waiting)
	s.waiting = s.waiting[:0]
	return err
}
