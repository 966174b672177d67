"""Computes the vectors of the cryptography again, by code that shares none with the Go packages.

    python3 check.py
    python3 check.py --aead > aead.json
    python3 check.py --rfc9605 test-vectors.json

The first checks tokens.json, noise.json and datagrams.json. The last checks this file itself against the vectors of
RFC 9605, from its authors' repository (sframe-wg/sframe, test-vectors/test-vectors.json). Needs the package
cryptography and the command openssl, version 3.
"""

import base64
import hashlib
import hmac
import ipaddress
import json
import os
import struct
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


def hexed(v):
    return {k: x.hex() if isinstance(x, bytes) else x for k, x in v.items()}


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


def epoch_keys(v):
    base = bytes.fromhex(v["secret"])
    for _ in range(v["epoch"]):
        base = ratchet(base)
    key, salt = schedule(v["sframe"], v["epoch"], base)
    return v | hexed({"base_key": base, "key": key, "salt": salt})


def datagram(keys, v):
    header, body = bytes.fromhex(v["header"]), bytes.fromhex(v["body"])
    if not v["suite"]:
        return v | hexed({"nonce": b"", "datagram": header + body})
    k = keys[v["suite"], v["number"] >> EPOCH_BITS]
    nonce = xor(bytes.fromhex(k["salt"]), be(v["number"], 12))
    return v | hexed({"nonce": nonce, "datagram": header + seal(k["sframe"], bytes.fromhex(k["key"]), nonce, header, body)})


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


def noise(v):
    static, ours, theirs = (bytes.fromhex(v[k]) for k in ("server_private", "client_ephemeral", "server_ephemeral"))
    out = {"server_public": public(static), "h_protocol": b"Noise_NK_25519_ChaChaPoly_SHA256".ljust(32, b"\0")}
    h = out["h_prologue"] = sha(out["h_protocol"], bytes.fromhex(v["prologue"]))
    h = out["h_server"] = sha(h, out["server_public"])
    chain = out["h_protocol"]
    for name, ephemeral, secret in (("hello", ours, dh(ours, public(static))), ("welcome", theirs, dh(theirs, public(ours)))):
        payload, step = bytes.fromhex(v[name]["payload"]), {}
        step["ephemeral"], step["dh"] = public(ephemeral), secret
        h = step["h_ephemeral"] = sha(h, step["ephemeral"])
        chain, key = step["chain"], step["key"] = hkdf2(chain, secret)
        step["ciphertext"] = ChaCha20Poly1305(key).encrypt(bytes(12), payload, h)
        h = step["h"] = sha(h, step["ciphertext"])
        step["message"] = step["ephemeral"] + step["ciphertext"]
        out[name] = v[name] | hexed(step)
    out["split_to_server"], out["split_to_client"] = hkdf2(chain, b"")
    out["to_server"] = expand(extract(h, out["split_to_server"]), b"uplink to server", 32)
    out["to_client"] = expand(extract(h, out["split_to_client"]), b"uplink to client", 32)
    return v | hexed(out)


# Connect tokens


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


def xseal(key, nonce, plain, associated):
    return ChaCha20Poly1305(hchacha20(key, nonce[:16])).encrypt(bytes(4) + nonce[16:], plain, associated)


def text(prefix, body):
    total = sha(prefix.encode(), body)[:4]
    return prefix + base64.urlsafe_b64encode(body + total).decode().rstrip("=")


def server(addr):
    host, port = addr.rsplit(":", 1)
    ip = ipaddress.ip_address(host.strip("[]"))
    return bytes([ip.version]) + ip.packed + struct.pack("<H", int(port))


def token(v):
    private, token_key, nonce, handover = (bytes.fromhex(v[k]) for k in ("private_key", "token_key", "nonce", "handover"))
    server_key = public(private)
    key_id = sha(b"uplink key id", server_key, token_key)[:4]
    claims = struct.pack("<QQQB", v["client_id"], v["issued_ms"], v["expires_ms"], len(v["servers"]))
    claims += b"".join(map(server, v["servers"])) + bytes([len(handover)]) + handover + bytes.fromhex(v["user_data"])
    route = bytes.fromhex(v["route"])
    head = b"\x02" + key_id + bytes([len(route)]) + route
    sealed = head + nonce + xseal(token_key, nonce, claims, b"uplink token" + head + server_key)
    return v | {
        "public_key": server_key.hex(),
        "key_id": key_id.hex(),
        "key_text": text("uplink-ds-key-1.", private + token_key),
        "issuer_key_text": text("uplink-issuer-key-1.", server_key + token_key),
        "claims": claims.hex(),
        "sealed": sealed.hex(),
        "token": text("uplink-token-1.", server_key + struct.pack("<Q", v["expires_ms"]) + sealed),
        "id": nonce[:16].hex(),
    }


# What is written


def envelope(v):
    body = server(v["client"]) + struct.pack("<Q", v["mark"]) + bytes.fromhex(v["datagram"])
    tag = mac(bytes.fromhex(v["key"]), bytes([v["direction"]]), server(v["proxy"]), body)[:16]
    return v | {"envelope": (body + tag).hex()}


def pattern(size, step, start):
    return bytes((start + i * step) % 256 for i in range(size))


def aeads():
    for suite in TAG:
        for size, aad in ((0, 3), (1, 11), (16, 0), (21, 3), (64, 11), (200, 3), (1181, 3), (40, 300)):
            key = pattern(KEY.get(suite, 48), 7, suite % 256 + size)
            nonce, header, plain = pattern(12, 5, size), pattern(aad, 3, 9), pattern(size, 11, suite % 256)
            out = seal(suite, key, nonce, header, plain)
            yield {"sframe": suite, "key": key, "nonce": nonce, "aad": header, "plain": plain, "sealed": out}


def cookies():
    mapped = bytes(10) + b"\xff\xff" + bytes([203, 0, 113, 7])
    ipv6 = bytes.fromhex("20010db8000000000000000000000001")
    for addr, ip in (("203.0.113.7:7777", mapped), ("[2001:db8::1]:40000", ipv6)):
        secret, port, nonce, at = pattern(32, 3, len(addr)), int(addr.rsplit(":", 1)[1]), 0x0123456789ABCDEF, 54321
        tag = mac(secret, be(at, 4), ip, be(port, 2), be(nonce, 8))[:20]
        yield {"secret": secret, "addr": addr, "nonce": nonce, "at_ms": at, "cookie": be(at, 4) + tag}


def check_rfc(path):
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


def read(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)) as f:
        return json.load(f)


def same(name, want, got):
    assert want == got, f"{name}: {[(k, want[k], x) for k, x in got.items() if want.get(k) != x]}"


def check():
    key, nonce = bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927")
    want = "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"  # draft-irtf-cfrg-xchacha, 2.2.1
    assert hchacha20(key, nonce).hex() == want
    for v in read("tokens.json")["tokens"]:
        same("tokens.json: " + v["name"], v, token(v))
    for v in read("noise.json")["handshakes"]:
        same("noise.json: " + v["name"], v, noise(v))
    datagrams = read("datagrams.json")
    keys = {(v["suite"], v["epoch"]): v for v in datagrams["keys"]}
    for v in datagrams["keys"]:
        same("datagrams.json: keys", v, epoch_keys(v))
    for v in datagrams["sealed"]:
        same("datagrams.json: sealed", v, datagram(keys, v))
    for v in datagrams["envelopes"]:
        same("datagrams.json: envelopes", v, envelope(v))
    print("tokens.json, noise.json and datagrams.json agree")


def main():
    if sys.argv[1:2] == ["--rfc9605"]:
        return check_rfc(sys.argv[2])
    if sys.argv[1:2] != ["--aead"]:
        return check()
    vectors = {"aead": aeads(), "cookie": cookies()}
    json.dump({name: [hexed(v) for v in group] for name, group in vectors.items()}, sys.stdout, indent=1)
    print()


main()
