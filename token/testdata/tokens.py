"""Writes tokens.json again from the keys, claims and nonces in it, by code that shares none with the package.

    python3 tokens.py tokens.json

HChaCha20 is checked against draft-irtf-cfrg-xchacha, section 2.2.1. Needs the package cryptography.
"""

import base64
import hashlib
import ipaddress
import json
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

VERSION = b"\x01"


def hchacha20(key, nonce):
    s = list(struct.unpack("<16I", b"expand 32-byte k" + key + nonce))

    def quarter(a, b, c, d):
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            t = s[z] ^ s[x]
            s[z] = (t << n | t >> (32 - n)) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return struct.pack("<8I", *s[:4], *s[12:])


def seal(key, nonce, plain, associated):
    return ChaCha20Poly1305(hchacha20(key, nonce[:16])).encrypt(bytes(4) + nonce[16:], plain, associated)


def text(prefix, body):
    total = hashlib.sha256(prefix.encode() + body).digest()[:4]
    return prefix + base64.urlsafe_b64encode(body + total).decode().rstrip("=")


def server(addr):
    host, port = addr.rsplit(":", 1)
    ip = ipaddress.ip_address(host.strip("[]"))
    return bytes([ip.version]) + ip.packed + struct.pack("<H", int(port))


def make(v):
    private, token_key, nonce = (bytes.fromhex(v[k]) for k in ("private_key", "token_key", "nonce"))
    public = X25519PrivateKey.from_private_bytes(private).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    key_id = hashlib.sha256(b"uplink key id" + public + token_key).digest()[:4]
    claims = struct.pack("<QQQB", v["client_id"], v["issued_ms"], v["expires_ms"], len(v["servers"]))
    claims += b"".join(map(server, v["servers"])) + bytes.fromhex(v["user_data"])
    route = bytes.fromhex(v.setdefault("route", ""))
    head = VERSION + key_id + bytes([len(route)]) + route
    sealed = head + nonce + seal(token_key, nonce, claims, b"uplink token" + head + public)
    v |= {
        "public_key": public.hex(),
        "key_id": key_id.hex(),
        "key_text": text("uplink-ds-key-1.", private + token_key),
        "issuer_key_text": text("uplink-issuer-key-1.", public + token_key),
        "claims": claims.hex(),
        "sealed": sealed.hex(),
        "token": text("uplink-token-1.", public + struct.pack("<Q", v["expires_ms"]) + sealed),
        "id": nonce[:16].hex(),
    }
    return v


def main():
    key, nonce = bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927")
    want = "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"
    assert hchacha20(key, nonce).hex() == want
    with open(sys.argv[1]) as f:
        vectors = [make(v) for v in json.load(f)]
    with open(sys.argv[1], "w") as f:
        json.dump(vectors, f, indent=1)
        f.write("\n")


main()
