// Package rpcdelta makes the calls of a high-rate RPC small: each is quantized
// into integers, and sent as the difference from a frame that the receiver is
// known to hold.
//
// A [Schema] describes the arguments; [Compile] derives it from a Go struct,
// [ParseSchema] from a file. An [Encoder] turns frames into payloads, a
// [Decoder] payloads into frames, and acks flow back from it:
//
//	client                                    dedicated server
//	Type.Quantize -> Encoder.AppendFrame ---> Decoder.Decode -> Type.Restore
//	                 Encoder.Ack         <--- Decoder.AppendAck
//
// Everything after quantization is integer arithmetic, so what the decoder
// rebuilds is equal to what the client quantized, always, and nothing drifts.
// Payloads may be lost, duplicated, delayed and reordered; a payload refers only
// to frames that the decoder is known to hold.
//
// The package opens no sockets, reads no clock and starts no goroutine. Packages
// client and ds carry its payloads over package transport; with a transport of
// your own, use it alone.
package rpcdelta
