"""What is a secret: the one definition, for boxes and for the controller. Standard library only, Python 3.9.

Two questions decide. Does the *name* say that the value is secret (`HF_TOKEN`, `--api-key`)? Does the *value* look
like one wherever it stands (`ghp_...`, `Bearer ...`, a URL with a password, a private key)? What only counts tokens of
text (TOKENIZERS_PARALLELISM, MAX_TOKENS) or names a file is shown.

Everything that prints an environment, a command line, a log line or settings sends it through here. When in doubt a
value is masked: one that is hidden by mistake costs a look, one that is shown by mistake costs a new key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MASK = "(secret)"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FLAGS = ("api-key", "admin-api-key", "ssl-keyfile-password", "watermark-key")
"""Flags of SGLang whose values are secret; argparse takes their abbreviations too (`--api-k`)."""
_PLAIN_FLAGS = frozenset({"ssl-keyfile"})
"""A path. It begins as a secret flag does and is no abbreviation of it: argparse takes a whole name first."""
_SHORTEST_ABBREVIATION = 2

_ALWAYS = _words(
    "secret secrets password passwords passwd passphrase passphrases apikey apikeys credential credentials creds "
    "authorization bearer jwt dsn"
)
"""Words that make a name secret, wherever they stand in it."""
_FUSED = re.compile(r"(password|passwd|passphrase|apikey|secretkey|accesskey|privatekey|authtoken|accesstoken)s?$")
"""Endings of a word written together, as in PGPASSWORD."""
_AT_THE_END = frozenset({"key", "keys", "token", "pass", "pwd", "pw", "auth", "cookie", "cookies"})
"""Words that make a name secret as its last word."""
_NEVER_LAST = _words("file filename path dir directory folder name header type length len size count ttl url")
"""As its last word: the name means where the secret lies or how long it is, not the secret."""
_PLAIN_VALUES = _words("0 1 true false yes no on off none null")
"""Values that are no secret under any name: HF_HUB_DISABLE_IMPLICIT_TOKEN=1."""
_KEYS_OF_DATA = _words(
    "public cache routing route graph sort sorting partition primary foreign hash group lookup column row index map "
    "dict json yaml state object bucket"
)
"""Before `key`: a key of data, or one that everybody may know."""
_TOKENS_OF_TEXT = _words(
    "new next max min num per cached cache input output prompt prefill decode draft verify accept total first last "
    "time inter bos eos pad unk cls sep mask stop special image audio video think vocab text oracle"
)
"""Before `token`: a piece of text that a model reads or writes."""
_NUMBERED = frozenset({"id", "ids"})
"""After `key`: the name of a key, which is given with it (AWS_ACCESS_KEY_ID)."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_LEFT = r"(?<![A-Za-z0-9])"
_HF_IDENTIFIERS = (
    "overrides transfer tokenizer tokenizers processor processors generation quantization quantizer checkpoint "
    "checkpoints transformers pretrained repository repositories embeddings attention downloader"
).replace(" ", "|")
_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        _LEFT + r"gh[opsur]_[A-Za-z0-9]{6,}",
        _LEFT + r"github_pat_\w{6,}",
        # hf_transfer and hf_overrides are names, hf_ with a digit or a capital letter is a token
        _LEFT + r"hf_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{6,}",
        _LEFT + r"hf_(?!(?:" + _HF_IDENTIFIERS + r")(?![a-z]))[a-z]{9,}(?![A-Za-z0-9_])",
        _LEFT + r"(?:hf_oauth_|api_org_)[A-Za-z0-9]{8,}",
        _LEFT + r"[spr]k[-_](?:live|test|proj|ant|or|svcacct|admin)[-_][\w-]{6,}",
        _LEFT + r"sk-[\w-]{8,}",
        _LEFT + r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat)-[\w.-]{6,}",
        _LEFT + r"(?:xox[a-z]|xapp)-[\w-]{6,}",
        _LEFT + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}",
        _LEFT + r"npm_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{6,}",
        _LEFT + r"npm_[a-z]{16,}",
        _LEFT + r"nvapi-[\w-]{6,}",
        _LEFT + r"pypi-Ag[\w-]{6,}",
        _LEFT + r"AIza[\w-]{20,}",
        _LEFT + r"ya29\.[\w-]{10,}",
        _LEFT + r"(?:gsk|dckr_pat|dckr_oat|dop_v1|shpat|lsv2_pt|lsv2_sk|r8|fw)_(?=[A-Za-z]*\d)[A-Za-z0-9_-]{10,}",
        _LEFT + r"(?:xai|pplx|tvly|tskey|csk)-(?=[A-Za-z-]*\d)[\w-]{10,}",
        _LEFT + r"hv[sbr]\.[\w-]{10,}",
        _LEFT + r"SG\.[\w-]{10,}\.[\w-]{10,}",
        _LEFT + r"AGE-SECRET-KEY-1[A-Z0-9]{10,}",
        _LEFT + r"eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)*",
    )
)
"""What looks like a secret by itself: prefixes that the issuers document, tokens of three parts."""
_PRIVATE_KEY = "PRIVATE KEY"
_PRIVATE_KEYS = tuple(
    re.compile(shape)
    for shape in (
        # the first line and all that follows it; the last lines, where the first is out of sight
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        r"(?:[A-Za-z0-9+/=]{8,}\s+)*[A-Za-z0-9+/=]*\s*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    )
)
"""A private key in PEM, which goes over many lines."""
_USER = re.compile(r"(?<=://)(?![^\s/?#@'\"]*:\d+(?:[/?#\s'\"]|$))[^\s'\"/?#@]*:(?:[^\s'\"]{0,500}@|\S{0,500}?@)")
"""User and password of a URL, up to the last @: whoever writes a @ into a password forgets to encode it."""
_LONG_USER = re.compile(r"(?<=://)[^\s/:?#@'\"]{16,}@")
"""A URL with a long user alone: a token."""
_SCHEME = re.compile(r"\b(Bearer|Token|Basic)(\s+)(\S+)", re.I)
_SCHEME_WORDS = re.compile(r"(token|auth\w*|scheme|realm|credentials?|is|was|not|or|and|in|for)s?[.,:;)\]'\"]*", re.I)
"""After `Bearer` in a sentence."""
_ENCODED = re.compile(r"(?=.*[A-Z0-9=+/])[A-Za-z0-9+/]{6,}=*")

_QUOTES = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_ASSIGNED = (
    re.compile(
        r"""((?:--?)?[A-Za-z_][\w.-]*|(?i:api|access|secret|private|auth)\s(?i:key|token))"""
        r"""(\\*['"]?\s*(?:=>|:=|[=:])\s*)"""
    ),
    re.compile(
        r"""\\+(['"])[^\n]*?\\+\1|""" + _QUOTES + r"""|[\[({][^\])}]*[\])}]|(?:(?:Bearer|Basic|Token|Digest)\s+)?\S+""",
        re.I,
    ),
)
"""`name=value`, `name: value`, `"name": "value"`, also inside of text that was quoted before."""
_QUERY = (re.compile(r"(?<=[?&])([A-Za-z_][\w.-]*)(=)"), re.compile(r"[^\s&'\"#]+"))
"""A parameter of a URL: it ends at the next one."""
_FLAG_IN_TEXT = (
    re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)(\s+)"),
    re.compile(r"'[^']*'|\"[^\"]*\"|[^\s'\",\]]\S*"),
)
_LISTED_FLAG = (re.compile(r"(?<=['\"])(--?[A-Za-z][\w-]*)(['\"]\s*,?\s*)"), re.compile(_QUOTES))
"""A command line that was printed as a list: `'--api-key', 'x'`."""
_NOTHING = re.compile(
    r"[\\'\"]*(?:None|null|nil|true|false|unset|yes|no|on|off|[01]|\(secret\))?[\s,;.)}\]\\'\"]*", re.I
)
_NUMBER = re.compile(r"[\d.,%]+[,;.)\]}]*")
_QUOTED = re.compile(r"(\\*['\"]).*\1", re.S)
_CLOSERS = re.compile(r"[,;)}\]'\"\\]*$")


def is_secret_name(name: str) -> bool:
    """Whether a variable, setting or flag of that name holds a secret: HF_TOKEN, api_key."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():  # API_KEY_2
        words.pop()
    if not words or words[-1] in _NEVER_LAST:
        return False
    if _ALWAYS.intersection(words) or any(_FUSED.search(word) for word in words):
        return True
    numbered = words[-1] in _NUMBERED and len(words) > 1 and words[-2] == "key"
    last = "key" if numbered else words[-1]
    before = words[: -2 if numbered else -1]
    return last in _AT_THE_END and _says_secret(last, before)


def is_secret_flag(word: str) -> bool:
    """Whether the value of a flag is secret; `word` with or without dashes, also abbreviated as argparse allows."""
    name = word.lstrip("-").replace("_", "-")
    if name in _PLAIN_FLAGS:
        return False
    return bool(flag_meant(word)) or is_secret_name(name)


def flag_meant(word: str) -> str:
    """The flag of FLAGS that a word of a command line is, whole or abbreviated; empty: none."""
    name = word.lstrip("-").replace("_", "-")
    if name in FLAGS:
        return name
    if name in _PLAIN_FLAGS or len(name) < _SHORTEST_ABBREVIATION or not word.startswith("--"):
        return ""
    return next((flag for flag in FLAGS if flag.startswith(name)), "")


def is_secret_value(value: str) -> bool:
    """Whether a value looks like a secret, or holds one, whatever its name."""
    return text(value) != value


def is_secret(name: str, value: str) -> bool:
    """Whether a variable or setting is secret, by its name or by its value."""
    return variable(name, value) != value


def text(said: str, *known: str) -> str:
    """A text without its secrets: shapes, and values of secret names. Masking twice is the same as once.

    + known: secrets that are known by themselves, as the API key of the server
    """
    said = _without_shapes(without(said, known))
    for pattern in (_QUERY, _ASSIGNED, _FLAG_IN_TEXT, _LISTED_FLAG):
        said = _with_values_masked(pattern, said)
    return _SCHEME.sub(_scheme_masked, said)


def shapes(said: str) -> str:
    """A text without what looks like a secret by itself; for prose, in which `--api-key or` gives no value."""
    return _SCHEME.sub(_scheme_masked, _without_shapes(said))


def _without_shapes(said: str) -> str:
    for shape in _SHAPES:
        said = shape.sub(MASK, said)
    if _PRIVATE_KEY in said:  # what they look for would be searched from every word of a long log
        for shape in _PRIVATE_KEYS:
            said = shape.sub(MASK, said)
    return _LONG_USER.sub(f"{MASK}@", _USER.sub(f"{MASK}@", said))


def without(said: str, known: Iterable[str]) -> str:
    """A text without some secrets that are known by themselves."""
    for secret in sorted(filter(None, known), key=len, reverse=True):
        said = said.replace(secret, MASK)
    return said


def lines(said: list[str], *known: str) -> list[str]:
    """Lines of a log without their secrets, also without those that go over several lines."""
    return text("\n".join(said), *known).split("\n") if said else []


def argv(words: list[str]) -> list[str]:
    """A command line without its secrets: `--api-key x`, `--api-key=x`, and whatever looks like one in any word."""
    masked: list[str] = []
    secret_follows = False
    for word in words:
        name, equals, _ = word.partition("=")
        is_flag = name.startswith("-") and is_secret_flag(name)
        if secret_follows:
            masked.append(MASK)
            secret_follows = False
        elif is_flag and equals:
            masked.append(f"{name}={MASK}")
        else:
            masked.append(text(word))
            secret_follows = is_flag
    return masked


def environment(variables: dict[str, str]) -> dict[str, str]:
    """Variables in their order, the values of secret ones masked."""
    return {name: variable(name, value) for name, value in variables.items()}


def variable(name: str, value: str) -> str:
    """The value of a variable as it may be shown."""
    if value.lower() in _PLAIN_VALUES or not value:
        return value
    return MASK if is_secret_name(name) else text(value)


def data(value: Any, name: str = "") -> Any:
    """Plain data (what JSON can say) without its secrets. `name`: the key that it stands under."""
    if isinstance(value, dict):
        return {key: data(one, str(key)) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [data(one, name) for one in value]
    if isinstance(value, bool) or value is None:
        return value
    is_named = is_secret_flag(name) if name.startswith("-") else is_secret_name(name)
    if isinstance(value, str) and value.lower() in _PLAIN_VALUES:
        return value
    if is_named and value not in {"", 0}:
        return MASK
    return text(value) if isinstance(value, str) else value


def _says_secret(last: str, before: list[str]) -> bool:
    """Whether the last word of a name means a secret after these."""
    if last in {"key", "keys"}:  # a bare `key` is one of a mapping
        return bool(before) and not _KEYS_OF_DATA.intersection(before)
    if last == "token":
        return not _TOKENS_OF_TEXT.intersection(before)
    if last in {"pwd", "pw"}:  # PWD and OLDPWD are folders
        return bool(before)
    return last != "pass" or not {"forward", "single", "per", "backward"}.intersection(before[-1:])


def _with_values_masked(patterns: tuple[re.Pattern[str], re.Pattern[str]], said: str) -> str:
    """Each value whose name is secret is masked. The value of another may be an assignment of its own."""
    name_and_sign, value_of = patterns
    done: list[str] = []
    at = 0
    for found in name_and_sign.finditer(said):
        if found.start() < at or not _names_secret(found[1]):
            continue
        value = value_of.match(said, found.end())
        if value is not None and not _is_plain(found[1], found[2], value.group()):
            done += [said[at : value.start()], _masked_value(value.group())]
            at = value.end()
    return "".join([*done, said[at:]])


def _names_secret(name: str) -> bool:
    return is_secret_flag(name) if name.startswith("-") else is_secret_name(name.rpartition(".")[2])


def _is_plain(name: str, sign: str, value: str) -> bool:
    """Nothing, a switch, or what only stands behind the word `token`.

    `#token: 1234`: a server counts tokens in its log, and a parser says `unexpected token: }`.
    """
    if _NOTHING.fullmatch(value):
        return True
    is_bare = name.rpartition(".")[2].lower() == "token" and "=" not in sign
    return is_bare and bool(_NUMBER.fullmatch(value) or not re.search(r"\w{6}", value))


def _masked_value(value: str) -> str:
    """MASK in place of the value; quotes around it stay, and so do brackets and commas behind it."""
    if quoted := _QUOTED.fullmatch(value):
        return f"{quoted[1]}{MASK}{quoted[1]}"
    if value[0] in "[({":
        return MASK
    return MASK + _closers(value)


def _scheme_masked(found: re.Match[str]) -> str:
    scheme, value = found[1], found[3]
    if value.startswith(MASK) or _SCHEME_WORDS.fullmatch(value):
        return found[0]
    is_secret_after = scheme.lower() == "bearer" or _ENCODED.match(value)
    if scheme.lower() == "token":  # in a sentence nearly every word may follow
        is_secret_after = re.match(r"(?=[^\W_]*\d)[\w.-]{16,}", value)
    return f"{scheme}{found[2]}{MASK}{_closers(value)}" if is_secret_after else found[0]


def _closers(value: str) -> str:
    found = _CLOSERS.search(value)
    return found.group() if found else ""
