//go:build steered

package steer

import "github.com/uplink-rpc/uplink/internal/codec/rangecoder"

func init() { Message = rangecoder.Steer }
