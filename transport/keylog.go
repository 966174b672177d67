package transport

import (
	"sync"

	"github.com/uplink-rpc/uplink/transport/internal/seal"
	"github.com/uplink-rpc/uplink/transport/keylog"
)

// keyLogs guards all writers of key logs, of which several configurations may share one.
var keyLogs sync.Mutex

// keyLog returns what a session tells its secrets: nil, unless [Config.KeyLog] asks for them.
func (c Config) keyLog() func(uint64, seal.Suite, seal.Secrets) {
	w, log := c.KeyLog, c.Logger
	if w == nil {
		return nil
	}
	return func(id uint64, suite seal.Suite, secrets seal.Secrets) {
		s := keylog.Session{ID: id, Suite: suite, ToServer: secrets.ToServer, ToClient: secrets.ToClient}
		line := s.Append(nil)
		keyLogs.Lock()
		defer keyLogs.Unlock()
		if _, err := w.Write(line); err != nil {
			log.Warn("key log", "error", err)
		}
	}
}
