"""What the boxes take over from the outer machine so that apt, pip and uv work in them as they do outside."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gpubox.lab import shell

_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_SETTINGS = {
    "etc/pip.conf": ("/etc/pip.conf",),
    "root/.config/pip/pip.conf": ("~/.config/pip/pip.conf", "~/.pip/pip.conf"),
    "etc/uv/uv.toml": ("/etc/uv/uv.toml",),
    "root/.config/uv/uv.toml": ("~/.config/uv/uv.toml",),
}
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "NIX_SSL_CERT_FILE")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_APT_SETTINGS = re.compile(
    r"Acquire::(https?::Proxy|https?::CaInfo|Check-Valid-Until|Check-Date|Retries)\b.* \"[^\"]+\""
)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def files(environ: Mapping[str, str], own_address: str) -> dict[str, str]:
    """Files of a box by path: CA certificates, /etc/environment, apt's, pip's and uv's settings; only what is set here.

    `own_address` is the lab's network, which the boxes must never reach through a proxy.
    """
    found = {target: text for target, places in _SETTINGS.items() if (text := _first_text(places))}
    found["etc/environment"] = environment(environ, own_address)
    found["etc/apt/apt.conf.d/90lab-clients"] = apt_settings(shell.run("apt-config", "dump"))
    for number, pem in enumerate(certificates(_bundles(environ))):
        found[f"usr/local/share/ca-certificates/lab-{number:03d}.crt"] = pem
    return {path: text for path, text in found.items() if text}


def environment(environ: Mapping[str, str], own_address: str) -> str:
    """The lines of /etc/environment (read by pam_env at each ssh login): pip's, uv's, proxies and CA bundles."""
    kept = {name: value for name, value in environ.items() if _is_client_setting(name)}
    kept |= {name: str(_BUNDLE) for name in _CA_VARIABLES if environ.get(name)}
    if any(name.lower() in _PROXY_VARIABLES[:4] for name in kept):
        kept["no_proxy"] = ",".join(filter(None, [environ.get("no_proxy", ""), "localhost,127.0.0.1", own_address]))
    return "".join(f"{name}={value}\n" for name, value in sorted(kept.items()) if "\n" not in value)


def apt_settings(dump: str) -> str:
    """The lines of `apt-config dump` that say how to download, as a configuration file."""
    return "".join(f"{line}\n" for line in dump.splitlines() if _APT_SETTINGS.match(line))


def certificates(bundles: str) -> list[str]:
    """Each certificate of a PEM text once, in a stable order, ready for /usr/local/share/ca-certificates."""
    return sorted({f"{pem}\n" for pem in _CERTIFICATE.findall(bundles)})


def folders(environ: Mapping[str, str], settings: str) -> list[Path]:
    """Folders of this machine that the settings name as package indexes; boxes get them read-only at the same path."""
    named = re.findall(r"(?:file://)?(/[^\s,]+)", "\n".join(_index_values(environ, settings)))
    # the pages of a `simple` index link to files beside it
    wanted = [path.removesuffix("/").removesuffix("/simple") for path in named]
    existing = {Path(os.path.realpath(path)) for path in wanted if Path(path).is_dir()}
    return sorted(p for p in existing if not any(other in p.parents for other in existing))


def _first_text(places: tuple[str, ...]) -> str:
    return next((p.read_text() for place in places if (p := Path(place).expanduser()).is_file()), "")


def _is_client_setting(name: str) -> bool:
    if name in ("PIP_CERT", "PIP_CONFIG_FILE", "PIP_CONSTRAINT", "PIP_TARGET", "PIP_CACHE_DIR", "UV_CACHE_DIR"):
        return False
    pip_or_uv = name.startswith("PIP_") or re.match(r"UV_(.*INDEX.*|FIND_LINKS|NATIVE_TLS|SYSTEM_CERTS|HTTP_.*)$", name)
    return bool(pip_or_uv) or name.lower() in _PROXY_VARIABLES


def _index_values(environ: Mapping[str, str], settings: str) -> list[str]:
    lines = [
        line.partition("=")[2]
        for line in settings.splitlines()
        if re.match(r"\s*(extra-)?(index-url|find-links)", line)
    ]
    return lines + [v for k, v in environ.items() if re.match(r"(PIP|UV)_(.*INDEX.*|FIND_LINKS)$", k)]


def _bundles(environ: Mapping[str, str]) -> str:
    """The certificates of this machine that Debian's own package does not bring."""
    own = [_read(p) for p in sorted(Path("/usr/local/share/ca-certificates").rglob("*.crt"))]
    named = {environ[name] for name in _CA_VARIABLES if environ.get(name)} - {str(_BUNDLE)}
    known = set(certificates("".join(_read(p) for p in Path("/usr/share/ca-certificates").rglob("*.crt"))))
    extra = certificates("".join([*own, *(_read(Path(p)) for p in sorted(named))]))
    return "".join(pem for pem in extra if pem not in known)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def folders_here() -> list[Path]:
    """`folders` by this machine's own settings."""
    return folders(os.environ, "".join(_first_text(places) for places in _SETTINGS.values()))
