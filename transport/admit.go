package transport

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/internal/admission"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

// Join is a client's request for a connection, for [Config.Admit].
type Join struct {
	// Client is the client id of the token.
	Client uint64
	// Token is the id of the token; Issued and Expires are its times, in UTC.
	Token           token.ID
	Issued, Expires time.Time
	// Handover reports whether another server issued the token to hand the client over.
	Handover bool
	// Attempt identifies the client's attempt to connect: a repeated request has the same, another
	// use of the token has not.
	Attempt [32]byte
}

const maxAdmit = 5 * time.Second

// ask asks [Config.Admit] about a granted request; the shard handles the answer. Meanwhile the
// token is used. The handshake lock is held.
func (s *shard) ask(from netip.AddrPort, hello wire.Hello, request *admission.Request) {
	common, claims := s.common, &request.Claims
	common.admission.Reserve(request)
	ctx, cancel := context.WithTimeout(context.Background(), maxAdmit)
	if !common.startAsking(request.Hash, asking{from.Addr(), cancel}) {
		return
	}
	hello.Route, hello.Message = nil, nil // of the read buffer
	j := Join{
		Client: claims.ClientID, Token: request.Token, Issued: claims.Issued, Expires: claims.Expires,
		Handover: claims.Handover != [32]byte{}, Attempt: request.Hash,
	}
	common.admits.Go(func() {
		defer cancel()
		err := common.cfg.Admit(ctx, j)
		if s.mailbox.post(func(now time.Time) { s.admitted(now, from, hello, request, err) }) {
			s.interrupt()
		}
	})
}

// admitted handles the answer of [Config.Admit].
func (s *shard) admitted(now time.Time, from netip.AddrPort, hello wire.Hello, request *admission.Request, err error) {
	common := s.common
	common.handshakes.Lock()
	defer common.handshakes.Unlock()
	common.endAsking(request.Hash)
	switch {
	case err == nil:
		if s.welcome(now, from, request); request.Code != wire.Granted {
			common.admission.Release(request) // the listener was full: the client may try again
		}
	case errors.Is(err, token.ErrUsed):
		request.Code = wire.TokenUsed
		s.welcome(now, from, request)
	default:
		common.log.Warn("client not admitted", "remote", from, "client", request.Client, "error", err)
		common.admission.Release(request)
		s.refuse(now, from, hello, wire.RefuseBusy)
	}
}

// asking is a call of [Config.Admit].
type asking struct {
	from   netip.Addr
	cancel context.CancelFunc
}

func (d *directory) isAsking(hello admission.Hash) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, ok := d.asking[hello]
	return ok
}

// startAsking adds a call, unless the listener has stopped: then it cancels the call and reports
// false.
func (d *directory) startAsking(hello admission.Hash, a asking) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking == nil {
		a.cancel()
		return false
	}
	d.asking[hello] = a
	return true
}

func (d *directory) endAsking(hello admission.Hash) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asking, hello)
}

// stopAsking cancels all calls and those that are started later.
func (d *directory) stopAsking() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asking {
		a.cancel()
	}
	d.asking = nil
}
