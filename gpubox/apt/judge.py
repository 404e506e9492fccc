"""Whether a keyring can vouch for a source, on this distribution, today."""

from collections.abc import Sequence
from datetime import datetime

from gpubox.apt import keys
from gpubox.apt.explain import Explanation
from gpubox.apt.keys import Key
from gpubox.support.errors import CannotTellError
from gpubox.support.versions import at_least

_REFUSES_SHA1 = {"debian": "13", "ubuntu": "26"}
"""First versions whose apt verifies with sqv, which refuses keys that only SHA-1 binds since 2026-02-01."""


def keyring(data: bytes | None, fingerprint: str | None, distribution: str, now: datetime) -> Explanation | None:
    """Why it cannot; None: it can.

    + data: content of the keyring; None: it is not there
    + fingerprint: the key that must be in it; None: any
    + distribution: as `debian12`
    """
    if data is None:
        return Explanation("no keyring", "the key that signs the source", "cuda.source.keyring")
    try:
        found = keys.parse(data)
    except CannotTellError:
        return Explanation("a keyring that cannot be read", "OpenPGP public keys", "cuda.source.keyring")
    if fingerprint is not None and fingerprint not in {key.fingerprint for key in found}:
        return Explanation(
            f"a keyring with {_names(found)}",
            f"the key {fingerprint}",
            "the key was rotated, or cuda.source.fingerprint is old",
        )
    if found and all(key.is_expired(now) for key in found):
        end = max(key.expires for key in found if key.expires)
        return Explanation(f"{_names(found)}: expired {end:%Y-%m-%d}", "a valid key", "a newer cuda.source.keyring")
    if _refuses_sha1(distribution) and found and all(key.weak_digest for key in found):
        return Explanation(
            f"{_names(found)}: bound by {found[0].weak_digest} alone, refused by {distribution} since 2026-02-01",
            "a key bound with SHA-256 or better",
            "the keyring of this distribution's own repository: an older one has the same key, signed in the old way",
        )
    return None


def _names(found: Sequence[Key]) -> str:
    return ", ".join(key.fingerprint for key in found) or "no key"


def _refuses_sha1(distribution: str) -> bool:
    family = distribution.rstrip("0123456789.")
    first = _REFUSES_SHA1.get(family)
    version = distribution.removeprefix(family)
    return first is not None and bool(version) and at_least(version, first)
