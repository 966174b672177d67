// Package seal is the cryptography of the transport: the handshake that gives a session its secrets
// ([Initiator], [Responder]), the cookies that a listener asks for before it does the work of one
// ([Cookies]), the sealing of datagrams ([Sealer], [Opener]), and the window that refuses replays
// ([Window]). It has no socket and no clock.
//
// The handshake is Noise_NK_25519_AESGCM_SHA256: the client knows the server's static key, the server
// learns who the client is from what the client's first message carries.
//
// Datagrams are sealed as SFrame (RFC 9605) seals frames: its key schedule with the epoch as key id,
// its nonces with the packet number as counter, the datagram's header as associated data. An epoch is
// 2^20 packet numbers long; the secrets of successive epochs are SFrame's ratchet, which cannot be
// turned back.
package seal

// EpochBits is how many bits of a packet number count within an epoch.
const EpochBits = 20
