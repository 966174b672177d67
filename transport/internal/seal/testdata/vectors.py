"""Writes vectors.json: what the package must compute, found by code that shares none with it.

    python3 vectors.py > vectors.json
    python3 vectors.py --check test-vectors.json

The second checks this file itself: against the vectors of RFC 9605, from its authors' repository
(sframe-wg/sframe, test-vectors/test-vectors.json). Needs the package cryptography and the command openssl, version 3.
"""

import hashlib
import hmac
import json
import subprocess
import sys

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CHACHA_POLY, CHACHA_SIP = 0xF001, 0xF002  # of the range for private use
TAG = {1: 10, 2: 8, 3: 4, 4: 16, CHACHA_POLY: 16, CHACHA_SIP: 8}  # by RFC 9605's number of the suite
KEY = {4: 16, CHACHA_POLY: 32, CHACHA_SIP: 32}  # 48 for the others
EPOCH_BITS = 20


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def expand(prk, info, size):
    out, block, i = b"", b"", 1
    while len(out) < size:
        block = mac(prk, block, info, bytes([i]))
        out, i = out + block, i + 1
    return out[:size]


def extract(salt, secret):
    return mac(salt or bytes(32), secret)


def be(value, size):
    return value.to_bytes(size, "big")


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


# SFrame


def schedule(suite, kid, base):
    prk = extract(b"", base)
    tail = be(kid, 8) + be(suite, 2)
    key = expand(prk, b"SFrame 1.0 Secret key " + tail, KEY.get(suite, 48))
    return key, expand(prk, b"SFrame 1.0 Secret salt " + tail, 12)


def ratchet(base):
    return expand(extract(b"", base), b"SFrame 1.0 Ratchet", 32)


def siphash(key, text):
    """SipHash-2-4 with 8 bytes of result, by OpenSSL."""
    options = ["-macopt", "hexkey:" + key.hex(), "-macopt", "size:8"]
    out = subprocess.run(["openssl", "mac", *options, "-in", "-", "SipHash"], input=text, capture_output=True, check=True)
    return bytes.fromhex(out.stdout.decode())


def seal(suite, key, nonce, aad, plain):
    if suite == 4:
        return AESGCM(key).encrypt(nonce, plain, aad)
    if suite == CHACHA_POLY:
        return ChaCha20Poly1305(key).encrypt(nonce, plain, aad)
    if suite == CHACHA_SIP:
        stream = Cipher(algorithms.ChaCha20(key, bytes(4) + nonce), None).encryptor()
        tag_key = stream.update(bytes(16))
        text = stream.update(plain)
        return text + siphash(tag_key, aad + text + bytes([len(aad) % 256]))
    size = TAG[suite]
    stream = Cipher(algorithms.AES(key[:16]), modes.CTR(nonce + bytes(4))).encryptor()
    text = stream.update(plain) + stream.finalize()
    lengths = be(len(aad), 8) + be(len(text), 8) + be(size, 8)
    return text + mac(key[16:], lengths, nonce, aad, text)[:size]


def datagram(suite, secret, number, aad, plain):
    epoch = number >> EPOCH_BITS
    for _ in range(epoch):
        secret = ratchet(secret)
    key, salt = schedule(suite, epoch, secret)
    return seal(suite, key, xor(salt, be(number, 12)), aad, plain)


# Noise_NK_25519_ChaChaPoly_SHA256


def public(private):
    key = X25519PrivateKey.from_private_bytes(private).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def dh(private, key):
    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(key))


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def hkdf2(chain, secret):
    both = expand(extract(chain, secret), b"", 64)
    return both[:32], both[32:]


def handshake(v):
    static, ours, theirs = (bytes.fromhex(v[k]) for k in ("static", "client_ephemeral", "server_ephemeral"))
    name = b"Noise_NK_25519_ChaChaPoly_SHA256"
    h = chain = name.ljust(32, b"\0")
    h = sha(sha(h, bytes.fromhex(v["prologue"])), public(static))

    def message(h, chain, ephemeral, secret, payload):
        h = sha(h, public(ephemeral))
        chain, key = hkdf2(chain, secret)
        sealed = ChaCha20Poly1305(key).encrypt(bytes(12), bytes.fromhex(payload), h)
        return public(ephemeral) + sealed, sha(h, sealed), chain

    v["server_public"] = public(static).hex()
    v["hello"], h, chain = message(h, chain, ours, dh(ours, public(static)), v["hello_payload"])
    v["welcome"], h, chain = message(h, chain, theirs, dh(theirs, public(ours)), v["welcome_payload"])
    to_server, to_client = hkdf2(chain, b"")
    v["to_server"] = expand(extract(h, to_server), b"uplink to server", 32)
    v["to_client"] = expand(extract(h, to_client), b"uplink to client", 32)
    return {k: x.hex() if isinstance(x, bytes) else x for k, x in v.items()}


# What is written


def pattern(size, step, start):
    return bytes((start + i * step) % 256 for i in range(size))


def aeads():
    for suite in TAG:
        for size, aad in ((0, 3), (1, 11), (16, 0), (21, 3), (64, 11), (200, 3), (1181, 3), (40, 300)):
            key = pattern(KEY.get(suite, 48), 7, suite % 256 + size)
            nonce, header, plain = pattern(12, 5, size), pattern(aad, 3, 9), pattern(size, 11, suite % 256)
            out = seal(suite, key, nonce, header, plain)
            yield {"sframe": suite, "key": key, "nonce": nonce, "aad": header, "plain": plain, "sealed": out}


def datagrams():
    for suite in (2, 4, CHACHA_POLY, CHACHA_SIP):
        secret = pattern(32, 13, suite % 256)
        for number in (0, 1, 0xFFFFF, 0x100000, 0x100001, 0x2ABCDE, 0x300000):
            header, plain = be(number & 0xFFFFFF, 3), pattern(20, 9, number % 256)
            out = datagram(suite, secret, number, header, plain)
            yield {"sframe": suite, "secret": secret, "number": number, "aad": header, "plain": plain, "sealed": out}


def handshakes():
    for i, (hello, welcome) in enumerate(((b"", b""), (pattern(300, 3, 1), pattern(10, 5, 2)))):
        yield handshake(
            {
                "prologue": b"uplink 3".hex(),
                "static": pattern(32, 3, 10 + i).hex(),
                "client_ephemeral": pattern(32, 5, 20 + i).hex(),
                "server_ephemeral": pattern(32, 7, 30 + i).hex(),
                "hello_payload": hello.hex(),
                "welcome_payload": welcome.hex(),
            }
        )


def cookies():
    mapped = bytes(10) + b"\xff\xff" + bytes([203, 0, 113, 7])
    ipv6 = bytes.fromhex("20010db8000000000000000000000001")
    for addr, ip in (("203.0.113.7:7777", mapped), ("[2001:db8::1]:40000", ipv6)):
        secret, port, nonce, at = pattern(32, 3, len(addr)), int(addr.rsplit(":", 1)[1]), 0x0123456789ABCDEF, 54321
        tag = mac(secret, be(at, 4), ip, be(port, 2), be(nonce, 8))[:20]
        yield {"secret": secret, "addr": addr, "nonce": nonce, "at_ms": at, "cookie": be(at, 4) + tag}


def check(path):
    with open(path) as f:
        vectors = json.load(f)
    n = 0
    for v in vectors["aes_ctr_hmac"] + vectors["sframe"]:
        b = {k: bytes.fromhex(x) for k, x in v.items() if isinstance(x, str)}
        if v["cipher_suite"] not in TAG:
            continue
        if "base_key" in b:
            key, salt = schedule(v["cipher_suite"], v["kid"], b["base_key"])
            assert (key, salt) == (b["sframe_key"], b["sframe_salt"]), v
            assert xor(salt, be(v["ctr"], 12)) == b["nonce"], v
            out = b["aad"][: -len(b["metadata"])] + seal(v["cipher_suite"], key, b["nonce"], b["aad"], b["pt"])
        else:
            out = seal(v["cipher_suite"], b["key"], b["nonce"], b["aad"], b["pt"])
        assert out == b["ct"], v
        n += 1
    print(f"{n} vectors of RFC 9605 agree")


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(sys.argv[2])
    vectors = {"aead": aeads(), "datagram": datagrams(), "handshake": handshakes(), "cookie": cookies()}
    hexed = {
        name: [{k: x.hex() if isinstance(x, bytes) else x for k, x in v.items()} for v in list(group)]
        for name, group in vectors.items()
    }
    json.dump(hexed, sys.stdout, indent=1)
    print()


main()
