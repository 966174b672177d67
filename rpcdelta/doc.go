// Package rpcdelta compresses the calls of a high-rate RPC. Each call is quantized to a frame of
// integers and sent as the difference from a frame that the receiver is known to hold.
//
// A [schema.Schema] describes the arguments. An [Encoder] encodes frames to payloads, a [Decoder]
// decodes payloads to frames, and returns acks:
//
//	client                                           dedicated server
//	schema.Type.Quantize -> Encoder.AppendFrame ---> Decoder.Decode -> schema.Type.Restore
//	              ParseAck, Encoder.Ack         <--- Decoder.AppendAck
//
// Everything after quantization is integer arithmetic, so the decoded frame always equals the
// quantized one, and errors do not accumulate. Payloads may be lost, duplicated, delayed and
// reordered; a payload refers only to frames that the decoder is known to hold. They must arrive
// unchanged: the transport authenticates them or has a checksum, because a changed payload can
// decode to other values, and so can frames after it. Payloads that arrive after newer ones are
// dropped, unless DecoderConfig.DeliverLate is set.
//
// The package opens no sockets, reads no clock and starts no goroutines. Packages client and ds
// carry its payloads over package transport; it can also be used with another transport.
package rpcdelta
