"""A file of flags: read as PyYAML and SGLang read it, or refused."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpubox.remote.config_file import read


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("model-path: /srv/m\ntp: 8\n", [("model-path", "/srv/m"), ("tp", "8")]),
        ("# mine\n\nport: 8100   # of the proxy\n", [("port", "8100")]),
        ("trust-remote-code: true\nlog-requests: No\n", [("trust-remote-code", True), ("log-requests", False)]),
        ("mem-fraction-static: 0.920\n", [("mem-fraction-static", "0.92")]),
        ("cuda-graph-bs: [1, 2, 4]\n", [("cuda-graph-bs", ["1", "2", "4"])]),
        ("lora-paths:\n  - a=/x\n  - b=/y\nport: 1\n", [("lora-paths", ["a=/x", "b=/y"]), ("port", "1")]),
        ("lora-paths:\n- a\n", [("lora-paths", ["a"])]),
        ("chat-template: 'a b'\n", [("chat-template", "a b")]),
        ("json-model-override-args: '{\"a\": 1}'\n", [("json-model-override-args", '{"a": 1}')]),
        ('"host": "0.0.0.0"\r\n', [("host", "0.0.0.0")]),  # noqa: S104 - a text
        ("---\nhost: 0.0.0.0\n", [("host", "0.0.0.0")]),  # noqa: S104 - a text
        ("dist-init-addr: 10.0.0.1:5000\n", [("dist-init-addr", "10.0.0.1:5000")]),
        ("schedule-conservativeness: 1e-3\n", [("schedule-conservativeness", "1e-3")]),
        ("quantization: null\nport:\n", [("quantization", None), ("port", None)]),
        ("", []),
    ],
)
def test_what_people_write(text: str, items: list[tuple[str, object]]) -> None:
    assert read(text) == items


@pytest.mark.parametrize(
    "text",
    [
        "{host: 0.0.0.0}\n",
        "a: {b: 1}\n",
        "a: &x 1\nb: *x\n",
        "a: |\n  text\n",
        "a: 012\n",
        "a: 0x1f\n",
        "a: 1_000\n",
        "a: 1:30\n",
        "a: 2026-11-29\n",
        "a: .5\n",
        'a: "x\\ny"\n',
        "a: it's\n",
        "a:\n  b: 1\n",
        "  a: 1\n",
        "a: [1, [2]]\n",
        "a: 1\na: 2\n",
        "a-b: 1\na_b: 2\n",
        "- a\n",
        "no colon\n",
        "a: ${HOME}/x\n",
        "a: x y\n",
    ],
)
def test_what_is_not_read_here_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|twice"):
        read(text)


VALUES = st.text(alphabet="abz019.-_:/+ eEnoy'\"[],#~tru@", max_size=8)


@given(VALUES)
def test_a_value_is_never_taken_for_another_one(value: str) -> None:
    """PyYAML has the last word: what is read here is what it reads, as SGLang prints it."""
    text = f"key: {value}\n"
    try:
        found = read(text)
    except ValueError:
        return
    told = yaml.safe_load(text)["key"]
    if isinstance(told, list):
        assert found == [("key", [str(one) for one in told])]
    else:
        assert found == [("key", told if told is None or isinstance(told, bool) else str(told))]
