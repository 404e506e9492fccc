"""Several servers on one box: one is named, the others are told."""

from dataclasses import replace

import pytest

from gpubox.onboard.several import chosen, described
from gpubox.onboard.state import Server
from gpubox.support.errors import GpuboxError


def server(pid: int, cards: str = "", port: int = 30000) -> Server:
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "/srv/m", "--port", str(port)]
    variables = {"CUDA_VISIBLE_DEVICES": cards} if cards else {}
    return Server(pid, argv, variables, [], [], "", "/", "", "0.5.23", "2.14.1")


LOW, HIGH = server(812, "0,1,2,3"), server(977, "4,5,6,7", 30001)


def test_one_is_no_question() -> None:
    assert chosen([LOW], None) is LOW
    assert chosen([LOW], 812) is LOW


@pytest.mark.parametrize("pid", [812, 977])
def test_the_named_one_of_two_on_cards_of_their_own(pid: int) -> None:
    assert chosen([LOW, HIGH], pid).pid == pid


def test_two_without_a_name_are_told_with_the_way() -> None:
    with pytest.raises(GpuboxError) as told:
        chosen([LOW, HIGH], None)
    assert "2 model servers run there: 812 on cards 0,1,2,3, port 30000, /srv/m; 977 on" in told.value.message
    assert "--server 812 (or another number) adopts that one; the others stay as they are" in told.value.message


@pytest.mark.parametrize(
    "other",
    [server(977, "3,4"), server(977), server(977, "GPU-1b2c"), replace(HIGH, environment={})],
)
def test_cards_that_are_shared_or_may_be(other: Server) -> None:
    for pid, said in ((None, "812 and 977 share cards: stop one"), (812, "shares cards with 977")):
        with pytest.raises(GpuboxError, match=said):
            chosen([LOW, other], pid)


def test_uuids_against_uuids() -> None:
    assert chosen([server(1, "GPU-1"), server(2, "GPU-2")], 2).pid == 2


def test_a_number_that_is_none() -> None:
    with pytest.raises(GpuboxError, match=r"no server that could be adopted is process 5; 2 model servers"):
        chosen([LOW, HIGH], 5)


def test_a_line_that_cannot_be_read_is_still_named() -> None:
    assert described(replace(LOW, argv=["python3", "-m", "sglang.launch_server", "x"])).startswith("812 on cards 0")
