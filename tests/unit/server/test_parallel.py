"""Cards of one machine, as SGLang's engine shares out its ranks."""

import pytest

from gpubox.server.parallel import cards


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ({"tp": 8}, 8),
        ({"tp": 2, "dp": 4}, 8),
        ({"tp": 2, "dp": 4, "pp": 1}, 8),
        ({"tp": 16, "nodes": 2}, 8),
        ({"tp": 8, "pp": 2, "nodes": 2}, 8),
        ({"tp": 2, "pp": 4, "nodes": 2}, 4),
        ({"tp": 16, "pp": 2, "nodes": 4}, 8),
        ({"tp": 8, "dp": 8, "attention_dp": True}, 8),
        ({"tp": 16, "dp": 8, "nodes": 2, "attention_dp": True}, 8),
        ({"tp": 4, "dp": 4, "pp": 2, "attention_dp": True}, 8),
        ({"tp": 1, "nodes": 2}, 1),
    ],
)
def test_cards(sizes: dict[str, int], count: int) -> None:
    assert cards(**sizes) == count  # type: ignore[arg-type]  # one of them is a bool
