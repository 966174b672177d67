// Package sidecar implements the SDK server of Agones for tests, from an OpenAPI description.
package sidecar

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

//go:embed sdk.json
var description []byte

// schema is a schema of an OpenAPI 2 description.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
	Additional *schema           `json:"additionalProperties"`
	Items      *schema           `json:"items"`
}

// api is an OpenAPI 2 description.
type api struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			In       string `json:"in"`
			Required bool   `json:"required"`
			Schema   schema `json:"schema"`
		} `json:"parameters"`
		Responses map[string]struct {
			Schema schema `json:"schema"`
		} `json:"responses"`
	} `json:"paths"`
	Definitions map[string]schema `json:"definitions"`
	Streams     map[string]schema `json:"x-stream-definitions"`
}

// check returns an error unless a JSON value has the form of a schema, without unknown fields.
func (a *api) check(at string, s schema, v any) error {
	if s.Ref != "" {
		section, name, _ := strings.Cut(strings.TrimPrefix(s.Ref, "#/"), "/")
		defined, ok := a.Definitions[name]
		if section == "x-stream-definitions" {
			defined, ok = a.Streams[name]
		}
		if !ok {
			return fmt.Errorf("%s: the description has no %s", at, s.Ref)
		}
		return a.check(at, defined, v)
	}
	ok := false
	switch s.Type {
	case "object":
		var fields map[string]any
		if fields, ok = v.(map[string]any); ok {
			for name, field := range fields {
				property, known := s.Properties[name]
				if !known && s.Additional != nil {
					property, known = *s.Additional, true
				}
				if !known {
					return fmt.Errorf("%s.%s is not in the description", at, name)
				}
				if err := a.check(at+"."+name, property, field); err != nil {
					return err
				}
			}
		}
	case "array":
		var items []any
		if items, ok = v.([]any); ok {
			for _, item := range items {
				if err := a.check(at+"[]", *s.Items, item); err != nil {
					return err
				}
			}
		}
	case "string":
		_, ok = v.(string)
	case "integer":
		var f float64
		f, ok = v.(float64)
		ok = ok && f == float64(int64(f))
	case "boolean":
		_, ok = v.(bool)
	}
	if !ok {
		return fmt.Errorf("%s: %v is no %s", at, v, s.Type)
	}
	return nil
}

// Server is a server generated from a description: it refuses requests that the description does
// not contain, and checks its own answers too.
type Server struct {
	*httptest.Server
	t   *testing.T
	api api

	mu       sync.Mutex
	calls    []string // "METHOD path body"
	fail     int      // number of requests to answer with 503
	watching int
	updates  chan string // updates for the watch, as JSON; an empty one closes its connection
}

// New starts a server from the description in a file; an empty path selects one of the operations
// that package fleet/agones uses.
func New(t *testing.T, path string) *Server {
	t.Helper()
	text := description
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{t: t, updates: make(chan string, 16)}
	if err := json.Unmarshal(text, &s.api); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// States of the game server, as JSON: at its start, and after an address was assigned.
const (
	Starting = `{"object_meta":{"name":"ds-1","labels":{"a":"b"}},"status":{"state":"Scheduled"}}`
	Ready    = `{"object_meta":{"name":"ds-1"},"status":{"state":"Ready","address":"203.0.113.7","ports":[{"name":"debug","port":1},{"name":"default","port":7501}]}}`
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.calls = append(s.calls, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	fails := s.fail > 0
	s.fail--
	s.mu.Unlock()
	operation, ok := s.api.Paths[r.URL.Path][strings.ToLower(r.Method)]
	switch {
	case fails:
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	case !ok:
		s.t.Errorf("the description has no %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
		return
	}
	for _, p := range operation.Parameters {
		var v any
		err := json.Unmarshal(body, &v)
		if err == nil {
			err = s.api.check("body", p.Schema, v)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			s.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
	}
	if len(operation.Parameters) == 0 && len(body) != 0 {
		s.t.Errorf("%s %s: a body", r.Method, r.URL.Path)
	}
	answer := func(text string) {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			s.t.Error(err)
		}
		if err := s.api.check("answer", operation.Responses["200"].Schema, v); err != nil {
			s.t.Error(err)
		}
		_, _ = io.WriteString(w, text+"\n")
		w.(http.Flusher).Flush()
	}
	switch r.URL.Path {
	case "/gameserver":
		answer(Starting)
	case "/watch/gameserver":
		s.mu.Lock()
		s.watching++
		s.mu.Unlock()
		answer(`{"result":` + Starting + `}`)
		for {
			select {
			case u := <-s.updates:
				if u == "" {
					return
				}
				answer(`{"result":` + u + `}`)
			case <-r.Context().Done():
				return
			}
		}
	default:
		answer(`{}`)
	}
}

// Called returns the requests so far: "METHOD path body".
func (s *Server) Called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// Watches returns the number of watches so far.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watching
}

// Fail answers the next n requests with an error.
func (s *Server) Fail(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = n
}

// Update sends a state of the game server to a watch; an empty one ends the watch.
func (s *Server) Update(state string) { s.updates <- state }
