package seal

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// The figures of RFC 9605, appendix C, for the suites of AES-128. Those with tags of 10 and 4 bytes
// share all but the cut with the one that is used here.
const (
	rfcPlain    = "64726166742d696574662d736672616d652d656e63"
	rfcMetadata = "4945544620534672616d65205747"
	rfcHeader   = "9901234567"
	rfcKeyID    = 0x123
	rfcCounter  = 0x4567
)

// rfcCTRHMAC is appendix C.2: one key and nonce, cut to three lengths of tag.
var rfcCTRHMAC = map[uint16]string{
	1: "6339af04ada1d064688a442b8dc69d5b6bfa40f4bef0583e8081069cc60705",
	2: "6339af04ada1d064688a442b8dc69d5b6bfa40f4be6e93b7da076927bb",
	3: "6339af04ada1d064688a442b8dc69d5b6bfa40f4be09480509",
}

// rfcSFrame is appendix C.3: from the base key to the sealed frame.
var rfcSFrame = []struct {
	suite                    uint16
	key, salt, nonce, sealed string
}{
	{
		1, "3f7d9a7c83ae8e1c8a11ae695ab59314b367e359fadac7b9c46b2bc6f81f46e16b96f0811868d59402b7e870102720b3",
		"50b29329a04dc0f184ac3168", "50b29329a04dc0f184ac740f", "449408b6f490086165b9d6f62b24ae1a59a56486b4ae8ed036b88912e24f11",
	},
	{
		2, "e2ec5c797540310483b16bf6e7a570d2a27d192fe869c7ccd8584a8d9dab91549fbe553f5113461ec6aa83bf3865553e",
		"e68ac8dd3d02fbcd368c5577", "e68ac8dd3d02fbcd368c1010", "3f31438db4d09434e43afa0f8a2f00867a2be085046a9f5cb4f101d607",
	},
	{
		3, "2c5703089cbb8c583475e4fc461d97d18809df79b6d550f78eb6d50ffa80d89211d57909934f46f5405e38cd583c69fe",
		"38c16e4f5159700c00c7f350", "38c16e4f5159700c00c7b637", "17fc8af28a5a695afcfc6c8df6358a17e26b2fcb3bae32e443",
	},
	{
		4, "d34f547f4ca4f9a7447006fe7fcbf768",
		"75234edefe07819026751816", "75234edefe07819026755d71", "b7412c2513a1b66dbb48841bbaf17f598751176ad847681a69c6d0b091c07018ce4adb34eb",
	},
}

const (
	rfcBaseKey = "000102030405060708090a0b0c0d0e0f"
	rfcSecret  = "d926952ca8b7ec4a95941d1ada3a5203ceff8cceee34f574d23909eb314c40c0"
	rfcCTRKey  = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f"
	rfcNonce   = "101112131415161718191a1b"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b := check.Value(hex.DecodeString(s))(t)
	return b
}

func TestRFC9605CTRHMAC(t *testing.T) {
	for suite, sealed := range rfcCTRHMAC {
		a := sframeAEAD(t, suite, unhex(t, rfcCTRKey), unhex(t, rfcNonce)) // under number 0 the salt is the nonce
		checkAEAD(t, suite, a, unhex(t, rfcMetadata), unhex(t, rfcPlain), unhex(t, sealed), 0)
	}
}

func TestRFC9605SFrame(t *testing.T) {
	prk := extract(unhex(t, rfcBaseKey))
	if !bytes.Equal(prk, unhex(t, rfcSecret)) {
		t.Fatalf("secret %x", prk)
	}
	for _, v := range rfcSFrame {
		key := deriveKey(prk, v.suite, rfcKeyID, len(v.key)/2)
		salt := deriveSalt(prk, v.suite, rfcKeyID)
		if !bytes.Equal(key, unhex(t, v.key)) || !bytes.Equal(salt, unhex(t, v.salt)) {
			t.Fatalf("suite %d: key %x, salt %x", v.suite, key, salt)
		}
		a := sframeAEAD(t, v.suite, key, salt)
		if nonce := a.nonceOf(rfcCounter); !bytes.Equal(nonce, unhex(t, v.nonce)) {
			t.Errorf("suite %d: nonce %x", v.suite, nonce)
		}
		checkAEAD(t, v.suite, a, unhex(t, rfcHeader+rfcMetadata), unhex(t, rfcPlain), unhex(t, v.sealed), rfcCounter)
	}
}

func checkAEAD(t *testing.T, suite uint16, a aead, aad, plain, sealed []byte, number uint64) {
	t.Helper()
	if got := a.seal(nil, aad, plain, number); !bytes.Equal(got, sealed) {
		t.Errorf("suite %d: sealed %x, want %x", suite, got, sealed)
	}
	if got, ok := a.open(nil, aad, sealed, number); !ok || !bytes.Equal(got, plain) {
		t.Errorf("suite %d: opened %x, %v", suite, got, ok)
	}
}
