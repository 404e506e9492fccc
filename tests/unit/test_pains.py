"""The public problems: every one is shown by a test or a rule, or a note says why not; every mark is a test's."""

from pathlib import Path

import pytest

from gpubox.pages import known_issues as pains
from gpubox.rules.registry import rules
from gpubox.support import paths
from gpubox.support.errors import GpuboxError

MARKS = pains.marks(paths.root())


def test_every_problem_is_shown_or_has_a_note() -> None:
    shown = {name for mark in MARKS for name in mark.pains}
    bare = [name for name, pain in pains.pains().items() if name not in shown and not pains.rules_for(pain)]
    assert [name for name in bare if not pains.pains()[name].note] == []


def test_every_mark_is_a_tests_and_names_a_known_problem() -> None:
    assert [mark for mark in MARKS if not mark.test.startswith("test_") and mark.test] == []
    assert [mark for mark in MARKS if not set(mark.pains) <= pains.pains().keys()] == []


def test_problems_have_numbers_of_their_own_and_name_known_rules() -> None:
    numbers = [int(name[1:]) for name in pains.pains()]
    assert len(numbers) == len(set(numbers))
    assert sorted(numbers)[:89] == list(range(1, 90))  # what was found later has numbers of its own
    assert {rule for pain in pains.pains().values() for rule in pain.rules} <= rules().keys()


def test_marks_of_functions_parameters_and_files(tmp_path: Path) -> None:
    file = tmp_path / "tests" / "unit" / "test_a.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        'pytestmark = [pytest.mark.slow, pytest.mark.pain("P01")]\n\n\n'
        '@pytest.mark.pain("P02", "P03")\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.pain("P04"))])\n'
        "def test_it(x: int) -> None: ...\n"
    )
    found = [(mark.pains, mark.kind, mark.file, mark.test) for mark in pains.marks(tmp_path)]
    assert found == [
        (("P01",), "table", "tests/unit/test_a.py", ""),
        (("P02", "P03"), "table", "tests/unit/test_a.py", "test_it"),
        (("P04",), "table", "tests/unit/test_a.py", "test_it"),
    ]
    file.write_text("@pytest.mark.pain(*ALL)\ndef test_it() -> None: ...\n")
    with pytest.raises(GpuboxError, match=r"test_a\.py:1: pytest\.mark\.pain\(\*ALL\)"):
        pains.marks(tmp_path)


def test_a_rule_with_the_same_thread_is_found() -> None:
    found = {name: {rule.id for rule in pains.rules_for(pain)} for name, pain in pains.pains().items()}
    assert found["P85"] == {"glm-dsa-sm120-release"}
    assert found["P01"] == set()
    assert found["P60"] == {"environment-empty"}
