package session

import (
	"sync"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Buffers is memory for the datagrams that are being built: a session needs some only while it sends.
// The zero value is ready. It is safe for concurrent use.
type Buffers struct{ pool sync.Pool }

type buffer [wire.MaxDatagram]byte

func (p *Buffers) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

func (p *Buffers) put(b *buffer) { p.pool.Put(b) }
