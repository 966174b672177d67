package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/admission"
	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/token"
)

// aheadInterval is the minimum time between two records that the clock of a backend is ahead.
const aheadInterval = time.Minute

// An admitted hello creates a session, but it may be a copy of another client's hello. The session
// is therefore pending: registered only by its id, and unknown to the handler, until a datagram
// encrypted with its keys shows that the client has them.

// receiveHello handles a hello. Until its sender's address is validated, it costs at most two MACs
// and no memory.
func (s *shard) receiveHello(now time.Time, from session.Path, b []byte) {
	hello, err := wire.ParseHello(b)
	switch {
	case err != nil:
		s.count(session.Malformed)
	case hello.Version != wire.Version:
		s.drops().Version++
		s.refuse(now, from, hello, wire.RefuseVersion)
	case !s.cookies.Valid(now, from.Addr, hello):
		if hello.Cookie != [wire.CookieSize]byte{} {
			s.drops().Cookie++
		}
		s.send(wire.AppendRetry(s.out[:0], s.cookies.Retry(now, from.Addr, hello)), from)
	case len(hello.Message) == 0:
		s.count(session.Malformed)
	default:
		s.handshake(now, from, hello)
	}
}

// refuse answers a hello with an unauthenticated reason, within the rate limit of such answers.
func (s *shard) refuse(now time.Time, to session.Path, hello wire.Hello, reason wire.RefuseReason) {
	if s.mayHint(now) {
		s.send(wire.AppendRefuse(s.out[:0], wire.Refuse{Nonce: hello.Nonce, Reason: reason}), to)
		err := session.Refusal(reason, token.KeyID(hello.Key))
		if reason == wire.RefuseKey {
			err = fmt.Errorf("%w, but %s", err, s.common.admission.KeyIDs())
		}
		s.refused(0, err)
	}
}

// refused calls the method Refused of the handler, if it has one.
func (s *shard) refused(client uint64, err error) {
	if h, ok := s.handler.(interface {
		Refused(client uint64, err error)
	}); ok {
		h.Refused(client, err)
	}
}

// handshake handles a hello whose sender's address is validated.
func (s *shard) handshake(now time.Time, from session.Path, hello wire.Hello) {
	common := s.common
	hash := admission.HashOf(hello.Message)
	common.handshakes.Lock()
	defer common.handshakes.Unlock()
	if c := common.byHello(hash); c != nil {
		c.update(func(s *session.Session) { s.Hello(now, from) })
		return
	}
	if common.isAsking(hash) {
		return
	}
	var request *admission.Request
	err := admission.ErrBusy
	if !common.admission.HasKey(hello) {
		err = errNoKey
	} else if common.mayPend(from.Addr.Addr(), common.cfg.MaxPending) && common.admission.Allow(now, from.Addr.Addr()) {
		request, err = common.admission.Read(now, hello)
	}
	switch {
	case err == nil && request.Code == wire.Granted && common.cfg.Admit != nil && !common.draining &&
		common.mayConnect(request.Claims.ClientID, common.cfg.MaxConns):
		s.ask(from, hello, request)
	case err == nil:
		s.welcome(now, from, request, false)
	case errors.Is(err, admission.ErrBusy):
		s.drops().RateLimited++
		s.refuse(now, from, hello, wire.RefuseBusy)
	default:
		common.log.Debug("hello refused", "remote", from.Addr, "key", token.KeyID(hello.Key).String(), "error", err)
		if errors.Is(err, errNoKey) {
			s.drops().Token++
		} else {
			s.count(session.Unauthenticated)
		}
		s.refuse(now, from, hello, wire.RefuseKey)
	}
}

// errNoKey means that the listener has none of the keys with the id in a hello: unlike a hello that
// was altered, that is a mistake of operators.
var errNoKey = errors.New("the server does not have the key")

// welcome answers a request, and creates its session if it is granted: after a Drain only if it was
// admitted by [Config.Admit], which has used the token. The handshake lock is held.
func (s *shard) welcome(now time.Time, from session.Path, request *admission.Request, admitted bool) {
	common := s.common
	switch {
	case request.Code != wire.Granted:
	case common.draining && !admitted:
		request.Code, request.Detail = wire.ServerFull, 0
	case !common.mayConnect(request.Claims.ClientID, common.cfg.MaxConns):
		request.Code, request.Detail = wire.ServerFull, uint64(common.cfg.MaxConns)
	}
	id := wire.WithServer(randomID(), common.cfg.ServerID)
	for common.byID(id) != nil || id == 0 {
		id = wire.WithServer(randomID(), common.cfg.ServerID)
	}
	welcome, secrets, err := common.admission.Welcome(request, id)
	switch {
	case err != nil:
		s.count(session.Unauthenticated)
	case request.Code == wire.Granted:
		s.accept(now, request, session.Grant{
			Remote: from, ID: id, Suite: request.Suite, Secrets: secrets, Welcome: welcome,
		})
	default:
		common.log.Debug("connection refused", "remote", from.Addr, "code", request.Code)
		switch request.Code {
		case wire.ServerFull:
			s.drops().Full++
		case wire.NoSuite:
			s.drops().Suite++
		default:
			s.drops().Token++
		}
		s.send(welcome, from)
		err := session.GrantError(wire.Grant{Code: request.Code, Detail: request.Detail}, request.Offered)
		if request.Times != "" {
			err = fmt.Errorf("%w; %s", err, request.Times)
		}
		if request.Code == wire.TokenAhead && now.Sub(common.warnedAhead) >= aheadInterval {
			common.warnedAhead = now
			common.log.Warn("the clock of the backend is ahead", "remote", from.Addr, "client", request.Client, "error", err)
		}
		s.refused(request.Client, err)
	}
}

// accept creates a session, which replaces a pending one of the same client. The handshake lock is
// held.
func (s *shard) accept(now time.Time, request *admission.Request, g session.Grant) {
	cfg := &s.common.cfg
	c := &Conn{
		shard: s, via: s, pc: s.pc, outbox: connOutbox{outbox: &s.outbox}, total: &s.counters.batch,
		id: g.ID, hash: request.Hash, client: request.Claims.ClientID,
		claims: &claims{data: bytes.Clone(request.Claims.UserData), issued: request.Claims.Issued, handover: request.Claims.Handover},
	}
	c.session = session.NewServer(now, g, session.Config{
		Timeout: cfg.Timeout, Output: c.outbox.enqueue, Buffers: &s.buffers, KeyLog: cfg.keyLog(), Limits: s.common.limits,
	})
	if old := s.common.add(c); old != nil {
		s.runOn(now, old.shard, func(now time.Time) { old.shard.remove(now, old) })
	}
	s.reschedule(now, c)
}

// register registers a connection that has just opened, and reports whether the handler may be
// informed of the connection now. It replaces an open connection of the same client: the handler of
// that connection, possibly of another shard, is called with its end first.
func (s *shard) register(now time.Time, c *Conn, state session.State) bool {
	if c.phase != pending || state == session.Connecting || c.registered {
		return !c.waiting
	}
	old, ok := s.common.open(c)
	if !ok {
		return false // replaced by a newer handshake of the client
	}
	c.registered = true
	if old != nil {
		old.update(func(s *session.Session) { s.Close(session.ErrReplaced, "") })
		c.waiting = true
		s.runOn(now, old.shard, func(now time.Time) { old.shard.replace(now, old, c) })
	}
	s.common.log.Debug("connection opened", "remote", c.RemoteAddr(), "client", c.client)
	return !c.waiting
}

// replace removes a connection of this shard, and announces its successor unless the connection is
// itself waiting for a predecessor.
func (s *shard) replace(now time.Time, c, successor *Conn) {
	s.remove(now, c)
	c.successor = successor
	if !c.waiting {
		s.runOn(now, successor.shard, func(now time.Time) { successor.shard.announce(now, successor) })
	}
}

// announce announces a connection to the handler after its predecessor has ended. Datagrams
// received meanwhile are lost.
func (s *shard) announce(now time.Time, c *Conn) {
	c.waiting = false
	if next := c.successor; next != nil {
		s.runOn(now, next.shard, func(now time.Time) { next.shard.announce(now, next) })
		return
	}
	c.deliver(now, received{state: c.state()}, s.handler)
	s.reschedule(now, c)
}

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
	hello.Route, hello.Message = nil, nil // they refer to the read buffer
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
		s.refuse(now, from, hello, wire.RefuseStore)
	}
}
