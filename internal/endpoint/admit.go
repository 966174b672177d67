package endpoint

import (
	"context"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/admission"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
)

const maxAdmit = 5 * time.Second

// ask asks [Config.Admit] about a granted request; the shard handles the answer. Meanwhile the
// token is used. The handshake lock is held.
func (s *shard) ask(from session.Path, hello wire.Hello, request *admission.Request) {
	common, claims := s.common, &request.Claims
	common.admission.Reserve(request)
	ctx, cancel := context.WithTimeout(context.Background(), maxAdmit)
	if !common.startAsking(request.Hash, asking{from.Addr.Addr(), cancel}) {
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
func (s *shard) admitted(now time.Time, from session.Path, hello wire.Hello, request *admission.Request, err error) {
	common := s.common
	common.handshakes.Lock()
	defer common.handshakes.Unlock()
	common.endAsking(request.Hash)
	switch {
	case err == nil:
		if s.welcome(now, from, request, true); request.Code != wire.Granted {
			common.admission.Release(request) // the listener was full: the client may try again
		}
	case errors.Is(err, token.ErrUsed):
		request.Code = wire.TokenUsed
		s.welcome(now, from, request, false)
	default:
		common.log.Warn("client not admitted", "remote", from.Addr, "client", request.Client, "error", err)
		common.admission.Release(request)
		s.refuse(now, from, hello, wire.RefuseBusy)
	}
}
