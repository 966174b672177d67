// Package ignore implements a handler for sessions whose events a test does not check.
package ignore

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
)

// Handler is an [endpoint.Handler] that does nothing. Handlers that need few methods embed it.
type Handler struct{}

func (Handler) Opened(*endpoint.Conn)                      {}
func (Handler) Closed(*endpoint.Conn, error)               {}
func (Handler) Datagram(*endpoint.Conn, []byte, time.Time) {}
func (Handler) Message(*endpoint.Conn, []byte, time.Time)  {}
func (Handler) Tick(time.Time)                             {}
