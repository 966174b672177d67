// Package agones is a client of the Agones SDK server, the sidecar of a game server in Kubernetes,
// over its REST interface. It implements the calls that a dedicated server needs: Ready, Health,
// Allocate, Shutdown, labels with the number of players and the capacity, and a watch of the game
// server's state.
//
//	sdk, err := agones.New(agones.Config{})
//	gs, err := sdk.Ready(ctx)               // returns when Agones has assigned address and port
//	err = server.SetAddrs(gs.Addr("default"))
//	go sdk.Run(ctx, load, nil)              // reports health, and players and capacity as labels
//
// It was written from the published OpenAPI description of the SDK (sdk.swagger.json, Agones 1.x),
// and its tests run against a server that is generated from such a description. They never ran
// against Agones itself.
package agones

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config configures an [SDK]. The zero value of each field means its default.
type Config struct {
	// URL is the address of the SDK server, by default "http://localhost:" and the port in the
	// environment variable AGONES_SDK_HTTP_PORT, or 9358.
	URL string
	// Timeout limits each attempt of a call, by default 5 s.
	Timeout time.Duration
	// Attempts is the maximum number of attempts of a call, by default 5. Between them the client
	// waits for Backoff, by default 100 ms, doubled each time. A call is repeated if there was no
	// answer, and for the statuses 429 and 500 to 599.
	Attempts int
	Backoff  time.Duration
	// HealthInterval is the time between two calls of Health by Run, by default 2 s. It must be
	// less than periodSeconds of the fleet's health section.
	HealthInterval time.Duration
	// HTTP sends the requests; nil selects a client of its own.
	HTTP *http.Client
}

// SDK calls an SDK server. It is safe for concurrent use.
type SDK struct{ cfg Config }

const (
	defaultPort = "9358"
	// maxAnswer is the maximum size of an answer, and of an update of a watch, in bytes.
	maxAnswer = 1 << 20
)

// New returns a client. It calls nothing.
func New(cfg Config) (*SDK, error) {
	cfg.URL = strings.TrimSuffix(cmp.Or(cfg.URL, "http://localhost:"+cmp.Or(os.Getenv("AGONES_SDK_HTTP_PORT"), defaultPort)), "/")
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.Attempts = cmp.Or(cfg.Attempts, 5)
	cfg.Backoff = cmp.Or(cfg.Backoff, 100*time.Millisecond)
	cfg.HealthInterval = cmp.Or(cfg.HealthInterval, 2*time.Second)
	cfg.HTTP = cmp.Or(cfg.HTTP, &http.Client{})
	if cfg.Timeout < 0 || cfg.Attempts < 0 || cfg.Backoff < 0 || cfg.HealthInterval < 0 {
		return nil, errors.New("agones: a duration or number of Config is negative")
	}
	return &SDK{cfg}, nil
}

// GameServer is the state of a game server in Agones.
type GameServer struct {
	Name, Namespace     string
	Labels, Annotations map[string]string
	// State is PortAllocation, Creating, Starting, Scheduled, RequestReady, Ready, Allocated,
	// Reserved, Unhealthy, Shutdown or Error.
	State string
	// Address is an IP address or a host name, empty until Agones has assigned it.
	Address string
	ports   []port
}

// port is a port that Agones has assigned.
type port struct {
	Name string `json:"name"`
	Port uint16 `json:"port"`
}

// UnmarshalJSON implements json.Unmarshaler for the form of the SDK.
func (g *GameServer) UnmarshalJSON(b []byte) error {
	var object struct {
		Meta struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"object_meta"`
		Status struct {
			State   string `json:"state"`
			Address string `json:"address"`
			Ports   []port `json:"ports"`
		} `json:"status"`
	}
	err := json.Unmarshal(b, &object)
	meta, status := &object.Meta, &object.Status
	*g = GameServer{meta.Name, meta.Namespace, meta.Labels, meta.Annotations, status.State, status.Address, status.Ports}
	return err
}

// Addr returns the public address of the named port, or of the first port if the name is empty. It
// is the zero value if there is no such port, or if Agones reports a host name instead of an
// address.
func (g *GameServer) Addr(port string) netip.AddrPort {
	ip, err := netip.ParseAddr(g.Address)
	if err != nil {
		return netip.AddrPort{}
	}
	for _, p := range g.ports {
		if port == "" || p.Name == port {
			return netip.AddrPortFrom(ip, p.Port)
		}
	}
	return netip.AddrPort{}
}

// Ready reports to Agones that the server accepts players, and returns the game server when Agones
// has assigned its address.
func (s *SDK) Ready(ctx context.Context) (*GameServer, error) {
	if err := s.call(ctx, http.MethodPost, "/ready", struct{}{}, nil); err != nil {
		return nil, err
	}
	var ready *GameServer
	done := errors.New("ready")
	err := s.Watch(ctx, func(g *GameServer) error {
		if g.Address == "" || len(g.ports) == 0 {
			return nil
		}
		ready = g
		return done
	})
	if errors.Is(err, done) {
		return ready, nil
	}
	return nil, err
}

// Health reports that the server is healthy. Agones replaces a server that stops reporting it.
func (s *SDK) Health(ctx context.Context) error {
	return s.call(ctx, http.MethodPost, "/health", struct{}{}, nil)
}

// Allocate reports that the server has players, so that Agones does not remove it when the fleet
// shrinks.
func (s *SDK) Allocate(ctx context.Context) error {
	return s.call(ctx, http.MethodPost, "/allocate", struct{}{}, nil)
}

// Shutdown asks Agones to remove the server.
func (s *SDK) Shutdown(ctx context.Context) error {
	return s.call(ctx, http.MethodPost, "/shutdown", struct{}{}, nil)
}

// GameServer returns the current state.
func (s *SDK) GameServer(ctx context.Context) (*GameServer, error) {
	var g GameServer
	if err := s.call(ctx, http.MethodGet, "/gameserver", nil, &g); err != nil {
		return nil, err
	}
	return &g, nil
}

// SetLabel sets a label of the game server. Agones puts "agones.dev/sdk-" in front of the key.
func (s *SDK) SetLabel(ctx context.Context, key, value string) error {
	return s.call(ctx, http.MethodPut, "/metadata/label", map[string]string{"key": key, "value": value}, nil)
}

// The labels that SetPlayers sets, without the prefix of Agones.
const (
	playersLabel  = "players"
	capacityLabel = "capacity"
)

// SetPlayers sets the labels "players" and "capacity": the current and the maximum number of
// players.
func (s *SDK) SetPlayers(ctx context.Context, players, capacity int) error {
	return errors.Join(
		s.SetLabel(ctx, playersLabel, strconv.Itoa(players)),
		s.SetLabel(ctx, capacityLabel, strconv.Itoa(capacity)),
	)
}

// Run calls Health regularly, and SetPlayers when the results of load have changed, until ctx is
// done. It reports failures to failed, if that is not nil, and continues.
func (s *SDK) Run(ctx context.Context, load func() (players, capacity int), failed func(error)) {
	report := func(err error) bool {
		if err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		return err == nil
	}
	type state struct{ players, capacity int }
	last := state{-1, -1}
	tick := time.NewTicker(s.cfg.HealthInterval)
	defer tick.Stop()
	for {
		report(s.Health(ctx))
		if now := (state{}); load != nil {
			now.players, now.capacity = load()
			if now != last && report(s.SetPlayers(ctx, now.players, now.capacity)) {
				last = now
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Watch calls f with the game server's state, now and after each change, until ctx is done or f
// returns an error, which Watch then returns. If the connection breaks, it reconnects. After
// Config.Attempts attempts without an update it returns the last error.
func (s *SDK) Watch(ctx context.Context, f func(*GameServer) error) error {
	wait, left := s.cfg.Backoff, s.cfg.Attempts
	for {
		var ended error
		err := s.stream(ctx, func(g *GameServer) error {
			wait, left = s.cfg.Backoff, s.cfg.Attempts
			ended = f(g)
			return ended
		})
		left--
		switch {
		case ended != nil:
			return ended
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case left <= 0 || !temporary(err):
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// stream passes the updates of one connection to f.
func (s *SDK) stream(ctx context.Context, f func(*GameServer) error) error {
	const path = "/watch/gameserver"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cfg.URL+path, nil)
	if err != nil {
		return fmt.Errorf("agones: %w", err)
	}
	res, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("agones: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // opened for reading only
	if res.StatusCode != http.StatusOK {
		return statusError(path, res)
	}
	limited := &io.LimitedReader{R: res.Body}
	for d := json.NewDecoder(limited); ; {
		var update struct {
			Result *GameServer `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		limited.N = maxAnswer
		switch err := d.Decode(&update); {
		case err != nil:
			return fmt.Errorf("agones: %s: %w", path, err)
		case update.Error != nil:
			return fmt.Errorf("agones: %s: %s", path, update.Error.Message)
		case update.Result != nil:
			if err := f(update.Result); err != nil {
				return err
			}
		}
	}
}

// answerError is an unsuccessful answer of the SDK server.
type answerError struct {
	path   string
	status int
	text   string // at most 256 bytes of the answer
}

func (e *answerError) Error() string {
	return fmt.Sprintf("agones: %s: status %d: %s", e.path, e.status, e.text)
}

func statusError(path string, res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 256)) // a truncated text is sufficient
	return &answerError{path, res.StatusCode, strings.TrimSpace(string(text))}
}

// temporary reports whether a repeated call may succeed.
func temporary(err error) bool {
	if status := (*answerError)(nil); errors.As(err, &status) {
		return status.status == http.StatusTooManyRequests || status.status >= 500
	}
	return err != nil
}

// call sends a request until it succeeds, and decodes the answer into out unless that is nil.
func (s *SDK) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("agones: %w", err)
		}
	}
	for attempt, wait := 1, s.cfg.Backoff; ; attempt, wait = attempt+1, 2*wait {
		err := s.once(ctx, method, path, body, out)
		if err == nil || attempt >= s.cfg.Attempts || !temporary(err) || ctx.Err() != nil {
			return err
		}
		if sleep(ctx, wait) != nil {
			return err
		}
	}
}

func (s *SDK) once(ctx context.Context, method, path string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.cfg.URL+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("agones: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("agones: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // opened for reading only
	if res.StatusCode != http.StatusOK {
		return statusError(path, res)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("agones: %s: %w", path, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("agones: %s: %w", path, err)
	}
	return nil
}

// sleep waits for d. It returns an error if ctx is done first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
