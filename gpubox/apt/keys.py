"""The keys of a keyring file, read without gpg: neither a minimal Debian nor the controller need have it.

Only what a person must know is read: fingerprint, end of validity, and with which digest the key is bound to its name.
Format: RFC 4880 (packets 4.2, public keys 5.5.2, signatures 5.2.3).
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gpubox.support.reading import reader

_SIGNATURE, _PUBLIC_KEY, _SUBKEY = 2, 6, 14
_CERTIFICATIONS = {0x10, 0x11, 0x12, 0x13, 0x1F}
_EXPIRES_AFTER = 9
_SHA1 = 2
_WEAK = {1: "MD5", _SHA1: "SHA-1", 3: "RIPEMD-160"}


@dataclass(frozen=True)
class Key:
    """One primary key of a keyring."""

    fingerprint: str
    """40 hexadecimal digits."""
    expires: datetime | None = None
    """None: never."""
    weak_digest: str = ""
    """`SHA-1`, `MD5`: every signature that binds the key is made with it; empty: at least one is stronger."""

    def is_expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= now


@reader("the keyring")
def parse(data: bytes) -> list[Key]:
    """The primary keys of a keyring, binary or armored. Error: cannot tell, for what is no keyring."""
    keys: list[Key] = []
    digests: list[set[int]] = []
    created = 0
    for tag, body in _packets(_binary(data)):
        if tag == _PUBLIC_KEY and body[0] == 4:
            created = int.from_bytes(body[1:5], "big")
            fingerprint = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False)
            keys.append(Key(fingerprint.hexdigest().upper()))
            digests.append(set())
        elif tag == _SIGNATURE and keys and body[0] == 4 and body[1] in _CERTIFICATIONS:
            if not _is_by(body, keys[-1].fingerprint):
                continue
            digests[-1].add(body[3])
            if after := _subpackets(body).get(_EXPIRES_AFTER):
                end = datetime.fromtimestamp(created + int.from_bytes(after, "big"), UTC)
                keys[-1] = replace(keys[-1], expires=end)
    return [replace(key, weak_digest=_weak(used)) for key, used in zip(keys, digests, strict=True)]


def _weak(used: set[int]) -> str:
    return _WEAK[min(used)] if used and used <= _WEAK.keys() else ""


def _is_by(body: bytes, fingerprint: str) -> bool:
    """A signature of somebody else on the key says nothing about it. Subpackets 16 and 33 name who made it."""
    fields = _subpackets(body)
    issuer = fields.get(33, b"\0")[1:] or fields.get(16, b"")
    return not issuer or fingerprint.endswith(issuer.hex().upper())


def _binary(data: bytes) -> bytes:
    armored = re.search(rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(.*?)-----END", data, re.S)
    if armored is None:
        return data
    lines = armored[1].replace(b"\r", b"").partition(b"\n\n")[2].splitlines()
    return base64.b64decode(b"".join(line for line in lines if not line.startswith(b"=")))


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError("no OpenPGP keyring")
        if head & 0x40:
            tag, (size, start) = head & 0x3F, _new_length(data, at + 1)
        else:
            octets = 1 << (head & 3)
            tag, size, start = (head >> 2) & 0xF, int.from_bytes(data[at + 1 : at + 1 + octets], "big"), at + 1 + octets
        if start + size > len(data):
            raise ValueError("a keyring that is cut off")
        yield tag, data[start : start + size]
        at = start + size


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 192:
        return first, at + 1
    if first < 224:
        return ((first - 192) << 8) + data[at + 1] + 192, at + 2
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5


def _subpackets(body: bytes) -> dict[int, bytes]:
    """Type -> content, of the signed and the unsigned area of a version 4 signature."""
    found: dict[int, bytes] = {}
    at = 4
    for _ in range(2):
        end = at + 2 + int.from_bytes(body[at : at + 2], "big")
        at += 2
        while at < end:
            size, start = _new_length(body, at)
            found.setdefault(body[start] & 0x7F, body[start + 1 : start + size])
            at = start + size
    return found
