"""How these tests themselves ask."""

import pytest
from testinfra.host import Host


@pytest.mark.pain("P82")
def test_all_questions_share_one_connection(host: Host) -> None:
    """Each connection has a port of its own here. Through sudo it cannot be told."""
    assert len({host.check_output("echo $SSH_CONNECTION") for _ in range(3)}) == 1
