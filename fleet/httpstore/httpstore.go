// Package httpstore shares the store of a fleet over HTTP: [Handler] serves a store, and [New]
// returns a client. With it, servers need no library of the database behind the store. "uplink
// backend" serves a store in memory; the command of module fleet/natsstore serves one in NATS.
//
// Use it within a private network, or behind a proxy with TLS: requests carry a secret.
package httpstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/web"
	"github.com/uplink-rpc/uplink/token"
)

// maxBody is the maximum size of a request, and of an answer other than a directory, in bytes.
const maxBody = 64 << 10

// Handler serves a store to servers that have the secret. If the secret is empty, it serves only
// programs on this machine: it refuses connections from other machines, requests that came through
// a proxy, and requests caused by pages of other sites. It limits the time and the size of request
// bodies. The http.Server must limit headers and the time of answers. Answers to GET /replaced/
// extend that time limit with each write.
func Handler(store fleet.Store, secret string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /use", post(store.Use))
	mux.HandleFunc("POST /begin", post(of(store.Begin)))
	mux.HandleFunc("POST /end", post(of(store.End)))
	mux.HandleFunc("POST /announce", post(store.Announce))
	mux.HandleFunc("POST /withdraw", post(store.Withdraw))
	mux.HandleFunc("GET /servers", func(w http.ResponseWriter, r *http.Request) {
		servers, err := store.Servers(r.Context())
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(servers) // fails only if the server has disconnected
	})
	mux.HandleFunc("GET /replaced/{server}", func(w http.ResponseWriter, r *http.Request) {
		if err := checkName(r.PathValue("server")); err != nil {
			fail(w, err)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stream := web.NewStream(w)
		out := json.NewEncoder(stream)
		_, gone := stream.Write(nil) // sends the header
		err := store.Replaced(ctx, r.PathValue("server"), func(s fleet.Session) {
			if gone == nil {
				gone = out.Encode(s)
			}
			if gone != nil {
				cancel()
			}
		})
		if errors.Join(err, gone) != nil {
			panic(http.ErrAbortHandler) // the client notices the broken answer
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if web.Authorize(w, r, secret) {
			mux.ServeHTTP(w, r)
		}
	})
}

// of returns a call with a session after checking the name of the session's server.
func of(call func(context.Context, fleet.Session) error) func(context.Context, fleet.Session) error {
	return func(ctx context.Context, s fleet.Session) error {
		if err := checkName(s.Server); err != nil {
			return err
		}
		return call(ctx, s)
	}
}

func checkName(server string) error {
	if err := fleet.CheckName(server); err != nil {
		return fmt.Errorf("%w: server: %w", fleet.ErrInvalid, err)
	}
	return nil
}

// post returns the handler of a call with one argument.
func post[T any](call func(context.Context, T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		if err := json.NewDecoder(web.Body(w, r, maxBody)).Decode(&in); err != nil {
			code := http.StatusBadRequest
			if errors.As(err, new(*http.MaxBytesError)) {
				code = http.StatusRequestEntityTooLarge
			}
			http.Error(w, err.Error(), code)
			return
		}
		if err := call(r.Context(), in); err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// The answers for the errors that [fleet.Store] names.
const used, newer = "used", "newer"

func fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, token.ErrUsed):
		http.Error(w, used, http.StatusConflict)
	case errors.Is(err, fleet.ErrNewer):
		http.Error(w, newer, http.StatusConflict)
	case errors.Is(err, fleet.ErrTaken):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, fleet.ErrInvalid):
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// store is a fleet.Store that a [Handler] serves, or several handlers with the same state. It is
// safe for concurrent use.
type store struct {
	places []place
	secret string
	http   *http.Client
	works  atomic.Uint32 // index of the place to ask first: the last one that answered
}

// place is where a handler serves the store.
type place struct {
	url  string
	name string // url without its password, for errors
}

// idleConns is the number of idle connections kept open. A server makes many calls in parallel when
// the players of a failed server join it at the same time.
const idleConns = 64

// New returns the store at a URL, or at several, separated by commas: a call asks them in turn
// until one answers, first the one that answered last. Each has an equal share of the time of the
// call. A nil client selects one with the defaults of package http, but more idle connections. New
// makes no request.
func New(addresses, secret string, client *http.Client) fleet.Store {
	if client == nil {
		client = &http.Client{}
		if defaults, ok := http.DefaultTransport.(*http.Transport); ok {
			own := defaults.Clone()
			own.MaxIdleConnsPerHost = idleConns
			client.Transport = own
		}
	}
	s := &store{secret: secret, http: client}
	for address := range strings.SplitSeq(addresses, ",") {
		p := place{strings.TrimSuffix(strings.TrimSpace(address), "/"), "(invalid URL)"}
		if u, err := url.Parse(p.url); err == nil {
			p.name = u.Redacted()
		}
		s.places = append(s.places, p)
	}
	return s
}

// do calls answer with the successful answer to a request of a place that answers.
func (s *store) do(ctx context.Context, method, path string, in any, answer func(*http.Response) error) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var failures []error
	first := s.works.Load()
	for i := range s.places {
		index := (first + uint32(i)) % uint32(len(s.places))
		answered, err := s.ask(ctx, len(s.places)-i, s.places[index], method, path, body, answer)
		if answered {
			s.works.Store(index)
			return err
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			s.works.CompareAndSwap(first, (index+1)%uint32(len(s.places)))
			break
		}
	}
	return errors.Join(failures...)
}

// ask sends a request to a place, and reports whether the store answered. The answer begins within
// a share of the time of ctx.
func (s *store) ask(ctx context.Context, shares int, p place, method, path string, body []byte, answer func(*http.Response) error) (answered bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := func() bool { return true }
	if end, limited := ctx.Deadline(); limited && shares > 1 {
		share := time.AfterFunc(time.Until(end)/time.Duration(shares), func() { cancel(errSilent) })
		begun = share.Stop
	}
	res, err := s.send(ctx, p, method, path, body)
	if !begun() && err == nil {
		_ = res.Body.Close()
		err = errSilent
	}
	if err != nil {
		refused := errors.Is(err, token.ErrUsed) || errors.Is(err, fleet.ErrNewer) || errors.Is(err, fleet.ErrInvalid)
		if errors.Is(context.Cause(ctx), errSilent) {
			err = fmt.Errorf("fleet store %s: %w", p.name, errSilent)
		}
		return refused, err
	}
	defer res.Body.Close() //nolint:errcheck // opened for reading only
	return true, answer(res)
}

var errSilent = errors.New("it does not answer in time")

// send sends a request to a place and returns the successful answer, whose body the caller closes.
func (s *store) send(ctx context.Context, p place, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("fleet store %s: no request can be made to it", p.name)
	}
	if s.secret != "" {
		req.Header.Set("Authorization", "Bearer "+s.secret)
	}
	res, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 256)) // a truncated text is sufficient
	if err := res.Body.Close(); err != nil {
		return nil, err
	}
	switch reason := strings.TrimSpace(string(text)); {
	case res.StatusCode == http.StatusConflict && reason == used:
		return nil, token.ErrUsed
	case res.StatusCode == http.StatusConflict && reason == newer:
		return nil, fleet.ErrNewer
	case res.StatusCode == http.StatusConflict:
		return nil, fmt.Errorf("%w: %s", fleet.ErrTaken, strings.TrimPrefix(reason, fleet.ErrTaken.Error()+": "))
	case res.StatusCode == http.StatusUnprocessableEntity:
		return nil, fmt.Errorf("%w: %s", fleet.ErrInvalid, strings.TrimPrefix(reason, fleet.ErrInvalid.Error()+": "))
	default:
		return nil, fmt.Errorf("fleet store %s: %s: %s", p.name, res.Status, reason)
	}
}

func (s *store) post(ctx context.Context, path string, in any) error {
	return s.do(ctx, http.MethodPost, path, in, func(*http.Response) error { return nil })
}

// Use implements [fleet.Store].
func (s *store) Use(ctx context.Context, u fleet.Use) error { return s.post(ctx, "/use", u) }

// Begin implements [fleet.Store].
func (s *store) Begin(ctx context.Context, session fleet.Session) error {
	return s.post(ctx, "/begin", session)
}

// End implements [fleet.Store].
func (s *store) End(ctx context.Context, session fleet.Session) error {
	return s.post(ctx, "/end", session)
}

// Announce implements [fleet.Store].
func (s *store) Announce(ctx context.Context, server fleet.Server) error {
	return s.post(ctx, "/announce", server)
}

// Withdraw implements [fleet.Store].
func (s *store) Withdraw(ctx context.Context, name string) error {
	return s.post(ctx, "/withdraw", name)
}

// Servers implements [fleet.Store].
func (s *store) Servers(ctx context.Context) (servers []fleet.Server, err error) {
	err = s.do(ctx, http.MethodGet, "/servers", nil, func(res *http.Response) error {
		return json.NewDecoder(io.LimitReader(res.Body, fleet.MaxServers*maxBody)).Decode(&servers)
	})
	return servers, err
}

// Replaced implements [fleet.Store].
func (s *store) Replaced(ctx context.Context, server string, f func(fleet.Session)) error {
	err := s.do(ctx, http.MethodGet, "/replaced/"+url.PathEscape(server), nil, func(res *http.Response) error {
		for d := json.NewDecoder(res.Body); ; {
			var session fleet.Session
			if err := d.Decode(&session); err != nil {
				return err
			}
			f(session)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
