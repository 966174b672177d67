package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/relay"
)

// identity returns the keys of --key, or the zero key, and the addresses of --addr.
func (o *dsOptions) identity(log *slog.Logger) (keys []token.Key, addrs []netip.AddrPort, err error) {
	if addrs, err = parseServers("addr", o.addrs); err != nil {
		return nil, nil, err
	}
	if o.agones.on {
		addrs = []netip.AddrPort{} // no client can join before Agones has assigned the address
	}
	if len(o.keys) == 0 {
		return []token.Key{{}}, addrs, nil
	}
	keys, err = o.loadKeys(log)
	return keys, addrs, err
}

// network returns the network of a server behind a proxy if --relay-key is set, otherwise nil.
func (o *dsOptions) network(log *slog.Logger) (transport.Network, error) {
	if o.relayKey == "" {
		return nil, nil
	}
	text, err := readSecretFile(o.relayKey, 4096, log)
	if err != nil {
		return nil, fmt.Errorf("--relay-key: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("--relay-key %s: want 64 hexadecimal digits", o.relayKey)
	}
	return relay.Network(nil, [32]byte(key), log), nil
}

func (o *dsOptions) loadKeys(log *slog.Logger) (keys []token.Key, err error) {
	for _, path := range o.keys {
		key, err := loadKey(path, log, token.ParseKey)
		if err != nil {
			hint := "want the file of uplink keygen -o; the one with " + issuerSuffix + " is for the backend"
			if errors.Is(err, fs.ErrPermission) {
				hint = "make the user of the server the owner of the file, or let systemd hand it to the service with LoadCredential, as deploy/systemd does"
			}
			return nil, hintedError{err, hint}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// reloadKeys reads the files of --key again at each SIGHUP, until the returned function is called.
func (o *dsOptions) reloadKeys(srv *ds.Server, log *slog.Logger) (stop func()) {
	if len(o.keys) == 0 {
		return func() {}
	}
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	var work sync.WaitGroup
	work.Go(func() {
		for range hangUps {
			keys, err := o.loadKeys(log)
			if err == nil {
				err = srv.SetKeys(keys...)
			}
			if err != nil {
				log.Error("keys not reloaded", "error", err)
				continue
			}
			log.Info("keys reloaded", "keys", keyIDs(keys))
		}
	})
	return func() {
		signal.Stop(hangUps)
		close(hangUps)
		work.Wait()
	}
}

func keyIDs[K interface{ ID() token.KeyID }](keys []K) string {
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.ID().String())
	}
	return strings.Join(ids, " ")
}
