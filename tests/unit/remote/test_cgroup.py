"""What a container may use, from the files of control groups of both versions."""

import os
import subprocess
from pathlib import Path

import pytest

from gpubox.remote import cgroup

pytestmark = pytest.mark.pain("P103")

GIB = 1 << 30
# right after a model of 60 GiB was read from disk: the lines of version 2, and of version 1 with its total_ lines
LOADED_V2 = f"""anon {9 * GIB}
file {61 * GIB}
kernel {2 * GIB}
kernel_stack 4194304
pagetables 41943040
percpu 1048576
sock 0
shmem {1 * GIB}
file_mapped 104857600
inactive_anon {10 * GIB}
active_anon 4096
inactive_file {20 * GIB}
active_file {40 * GIB}
unevictable 0
slab_reclaimable {1 * GIB}
slab_unreclaimable 209715200
"""
LOADED_V1 = f"""cache {61 * GIB}
rss 0
shmem 0
hierarchical_memory_limit {64 * GIB}
total_cache {61 * GIB}
total_rss {9 * GIB}
total_rss_huge 0
total_shmem {1 * GIB}
total_mapped_file 540672
total_inactive_anon {10 * GIB}
total_active_anon 4096
total_inactive_file {20 * GIB}
total_active_file {40 * GIB}
"""
OLD_V1 = "".join(line for line in LOADED_V1.splitlines(keepends=True) if "shmem" not in line)
# as a machine of version 1 printed it, with memory.usage_in_bytes 23002071040
PRINTED_V1 = """rss 13369344
shmem 10551296
total_cache 19241443328
total_rss 3760726016
total_shmem 61571072
total_inactive_anon 3787616256
total_active_anon 10678272
total_inactive_file 10080296960
total_active_file 9099620352
total_unevictable 23920640
"""
KERNELS_OWN = 4194304 + 41943040 + 1048576 + 209715200


@pytest.mark.parametrize(
    ("stat", "used", "in_use"),
    [
        pytest.param(LOADED_V2, str(71 * GIB), 10 * GIB + KERNELS_OWN, id="version 2"),
        pytest.param(LOADED_V1, str(71 * GIB), 10 * GIB, id="version 1"),
        pytest.param(OLD_V1, str(71 * GIB), 10 * GIB + 4096, id="version 1 of an old kernel"),
        pytest.param(PRINTED_V1, "23002071040", 3822297088, id="version 1 of a machine"),
        pytest.param("anon 4096\nfile 0\n", "8192", 4096, id="few lines"),
        pytest.param("", str(71 * GIB), 71 * GIB, id="no memory.stat"),
        pytest.param("rss 4096\n", "9", 4096, id="version 1 without a hierarchy"),
        pytest.param("", "", 0, id="nothing"),
        pytest.param("what?", "no number", 0, id="something else"),
    ],
)
def test_memory_in_use_is_without_the_page_cache(stat: str, used: str, in_use: int) -> None:
    assert cgroup.in_use(stat, used) == in_use


@pytest.mark.parametrize(
    ("limit", "stat", "available", "free"),
    [
        (str(64 * GIB), LOADED_V2, 200 * GIB, 54 * GIB - KERNELS_OWN),
        (str(64 * GIB), LOADED_V1, 200 * GIB, 54 * GIB),
        (str(64 * GIB), LOADED_V1, 20 * GIB, 20 * GIB),
        (str(8 * GIB), LOADED_V1, 200 * GIB, 0),
        ("max", LOADED_V2, 200 * GIB, 200 * GIB),
        ("9223372036854771712", LOADED_V1, 200 * GIB, 200 * GIB),
        ("", "", 200 * GIB, 200 * GIB),
    ],
)
@pytest.mark.pain("P29")
def test_free_memory(limit: str, stat: str, available: int, free: int) -> None:
    """By what memory.current says, a container of 64 GiB would have none left."""
    assert cgroup.free(f"{limit}\n", stat, str(71 * GIB), available) == free


@pytest.mark.parametrize(
    ("shown", "cpuset", "quota", "found"),
    [
        ("64\n64\n", "0-63\n", "max 100000\n", 64),
        ("64\n64\n", "0-7,16-23\n", "max 100000\n", 16),
        ("16\n128\n", "", "", 16),
        ("64\n8\n", "", "max 100000", 8),  # lxcfs shows a quota that stands above the container's own namespace
        ("64\n64\n", "0-63", "400000 100000\n", 4),
        ("64\n64\n", "0-63", "350000\n100000\n", 3),
        ("64\n64\n", "0-63", "50000 100000", 1),
        ("64\n64\n", "0-63", "-1\n100000\n", 64),
        ("64\n0\n", "\n", "\n", 64),
        ("", "", "", 1),
    ],
)
@pytest.mark.pain("P29")
def test_cores(shown: str, cpuset: str, quota: str, found: int) -> None:
    assert cgroup.cores(shown, cpuset, quota) == found


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"cpu.max": "200000 100000\n", "cpuset.cpus.effective": "0-3\n", "memory.max": f"{GIB}\n"}, (2, GIB)),
        ({"cpu.max": "max 100000\n", "memory.max": "max\n"}, (None, None)),
        (
            {
                "cpu/cpu.cfs_quota_us": "100000\n",
                "cpu/cpu.cfs_period_us": "100000\n",
                "cpuset/cpuset.cpus": "0-3\n",
                "memory/memory.limit_in_bytes": f"{GIB}\n",
            },
            (1, GIB),
        ),
        ({}, (None, None)),
    ],
)
def test_files_of_both_versions_read_here_and_by_the_shell(
    tmp_path: Path, files: dict[str, str], found: tuple[int | None, int | None]
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    own = len(os.sched_getaffinity(0))
    expected = (min(own, found[0] or own), found[1])
    assert cgroup.here(tmp_path, tmp_path / "no-cpuinfo") == expected

    def asked(text: str) -> str:
        words = ["sh", "-c", text.replace(str(cgroup.ROOT), str(tmp_path))]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    cores = cgroup.cores(str(own), asked(cgroup.first(cgroup.CPUSET)), asked(cgroup.QUOTA_TEXT))
    assert (cores, cgroup.limit(asked(cgroup.first(cgroup.LIMIT)))) == expected


def test_a_login_that_limits_threads_does_not_hide_cores() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1"}
    words = ["sh", "-c", cgroup.AFFINITY_TEXT]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == str(len(os.sched_getaffinity(0)))
