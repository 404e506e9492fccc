"""Apt and dpkg in the states that people find them in: put right in one run, or refused with the reason."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubox.operations.apt import ASIDE, waiting
from tests.faults.packages import CUDA, OLD_CARD, PackageBox, differences, errors

PROXY = Path(__file__).parent / "bad_proxy.py"
FOREIGN = "/etc/apt/sources.list.d/foreign.list"
OLD_LIST = "/etc/apt/sources.list.d/cuda.list"
OWN_LIST = "/etc/apt/sources.list.d/cuda-debian12-x86_64.list"
ARCHIVES = "/var/cache/apt/archives"
SECURITY = "535.309.01-0+deb12u1"
WHOLE_SET = (
    *("libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-alternative", "libnvidia-ptxjitcompiler1"),
    *("libnvidia-pkcs11-openssl3", "nvidia-legacy-check"),
)
INSTALL = "apt-get -y -q install --allow-downgrades --allow-change-held-packages --no-install-recommends"
HOLD_LOCK = "import fcntl, time; f = open('{path}', 'a'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep({seconds})"


@pytest.fixture(scope="module")
def converged(package_box: PackageBox) -> PackageBox:
    package_box.sees(OLD_CARD)
    package_box.converge().ended_well()
    return package_box


@pytest.fixture
def box(converged: PackageBox) -> Iterator[PackageBox]:
    """A converged box, brought back to that by a plain run after the test; which is part of what is tested."""
    yield converged
    converged.wish()
    converged.converge().ended_well()
    assert converged.converge().ended_well().changed == []


def hold_lock(box: PackageBox, path: str, seconds: int) -> None:
    program = HOLD_LOCK.format(path=path, seconds=seconds)
    box.host.run_expect([0], f'setsid python3 -c "{program}" >/dev/null 2>&1 </dev/null & sleep 0.5')


@pytest.mark.pain("P20", "P21", "P25")
def test_all_at_once_put_right_in_one_run(box: PackageBox) -> None:
    run = box.host.run_expect
    before = box.state()
    run([0], "update-alternatives --set cuda /usr/local/cuda-12.8")
    run([0], f"echo 'deb [signed-by=/usr/share/keyrings/old.gpg] {CUDA} /' > {OLD_LIST}; cp {OLD_LIST} {OWN_LIST}")
    wrong = " ".join(f"{name}={SECURITY}" for name in WHOLE_SET)
    run([0], f"mkdir -p {ASIDE}; mv {OLD_LIST} {OWN_LIST} {ASIDE}/")
    run([0], f"DEBIAN_FRONTEND=noninteractive {INSTALL} {wrong}")
    run([0], f"apt-mark auto {' '.join(WHOLE_SET[3:])}; apt-mark hold {' '.join(WHOLE_SET)}")
    run([0], f"mv {ASIDE}/*.list /etc/apt/sources.list.d/")
    run([0], f"dpkg --unpack {ARCHIVES}/cuda-nvcc-13-1_*.deb; : > /var/lib/dpkg/updates/0001")
    run([0], "echo 1 > /var/lib/dpkg/lock; echo 1 > /var/lib/apt/lists/lock")  # left behind: means nothing
    hold_lock(box, "/var/lib/dpkg/lock-frontend", 30)  # until the run asks, also on a slow machine

    done = box.converge().ended_well()
    text = errors(done.output)
    assert "waiting up to 300 s for process" in text
    assert "python3 -c import fcntl" in text
    assert box.converge().ended_well().changed == []
    assert differences(before, box.state()) == []
    notes = box.host.check_output(f"head -qn1 {ASIDE}/cuda*")
    assert f"Was {OLD_LIST}" in notes
    assert f"Was {OWN_LIST}" in notes


@pytest.mark.pain("P21")
def test_a_conflict_that_is_not_ours_is_named_before_anything_is_touched(box: PackageBox) -> None:
    box.host.run_expect([0], "rm /etc/profile.d/gpubox-cuda.sh")
    before = box.state()
    conflict = "deb [signed-by=/{}.gpg] http://foreign.test/ stable main"
    box.host.run_expect(
        [0], f"echo '{conflict.format('a')}' > {FOREIGN}; echo '{conflict.format('b')}' > {FOREIGN}.list"
    )
    refused = box.converge()
    box.host.run_expect([0], f"rm {FOREIGN} {FOREIGN}.list")
    assert refused.code == 1
    text = errors(refused.output)
    assert FOREIGN in text
    assert f"{FOREIGN}.list" in text
    assert "different Signed-By" in text
    assert differences(before, box.state()) == []


def test_somebody_elses_dead_source_is_reported_and_ours_goes_on(box: PackageBox) -> None:
    box.host.run_expect([0], f"echo 'deb [trusted=yes] http://127.0.0.1:9/ ./' > {FOREIGN}; dpkg --purge curl")
    done = box.converge().ended_well()
    box.host.run_expect([0], f"rm {FOREIGN}")
    assert "http://127.0.0.1:9/" in errors(done.output)
    assert "its old list is used" in errors(done.output)


@pytest.mark.pain("P22")
def test_a_key_that_was_changed_is_installed_again(box: PackageBox) -> None:
    ring = "/usr/share/keyrings/cuda-archive-keyring.gpg"
    box.host.run_expect([0], f"cp /usr/share/keyrings/debian-archive-keyring.gpg {ring}; dpkg --purge curl")
    done = box.converge().ended_well()
    assert any("Signing key" in name for name in done.changed)


@pytest.mark.pain("P22")
def test_a_key_that_does_not_sign_the_source_is_named(box: PackageBox) -> None:
    source = {"uri": CUDA, "keyring": f"/var/lib/gpubox-lab/apt{CUDA.partition('8080')[2]}cuda-keyring_1.1-1_all.deb"}
    box.wish(cuda={"source": {**source, "fingerprint": "A" * 40}})
    refused = box.converge()
    assert refused.code == 1
    assert f"the key {'A' * 40}" in errors(refused.output)


@pytest.mark.parametrize(
    ("purged", "pinned"),
    [("cuda-toolkit-13-1 cuda-compiler-13-1 cuda-nvcc-13-1", "cuda-nvcc-13-1"), ("curl libcurl4", "libcurl4")],
)
@pytest.mark.pain("P25")
def test_the_resolver_is_asked_before_anything_is_touched(box: PackageBox, purged: str, pinned: str) -> None:
    box.host.run_expect([0], f"dpkg --purge {purged}")
    pin = f"Package: {pinned}\\nPin: release *\\nPin-Priority: -1\\n"
    box.host.run_expect([0], f"printf '{pin}' > /etc/apt/preferences.d/by-hand; rm -f /etc/profile.d/gpubox-cuda.sh")
    before = box.state()
    refused = box.converge()
    box.host.run_expect([0], "rm /etc/apt/preferences.d/by-hand")
    assert refused.code == 1
    assert "The following packages have unmet dependencies" in errors(refused.output)
    changed = [line for line in differences(before, box.state()) if "by-hand" not in line]
    assert changed == []


def test_a_lock_is_waited_for_with_a_limit_and_its_holder_named(box: PackageBox) -> None:
    hold_lock(box, "/var/lib/apt/lists/lock", 20)
    waited = box.host.run(waiting(2))
    assert waited.rc == 1
    assert "It is held by process" in waited.stdout
    assert "import fcntl" in waited.stdout


def test_a_full_disk(box: PackageBox) -> None:
    box.host.run_expect([0], "dpkg --purge --force-depends cuda-nvcc-13-1; mkdir -p /usr/local/cuda-13.1/bin")
    box.host.run_expect([0], "mount -t tmpfs -o size=1M tmpfs /usr/local/cuda-13.1/bin")
    refused = box.converge()
    box.host.run_expect([0], "umount /usr/local/cuda-13.1/bin")
    assert refused.code == 1
    text = errors(refused.output)
    assert "No space left on device" in text
    assert "to do:  `df -h / /var`" in text


@pytest.mark.parametrize(
    ("how", "said", "todo"),
    [
        ("cut", "Failed to fetch", "run again"),
        ("alter", "Hash Sum mismatch", "a mirror or proxy gave an old or changed file"),
    ],
)
def test_a_proxy_that_cuts_off_or_alters(box: PackageBox, how: str, said: str, todo: str) -> None:
    settings = "/etc/apt/apt.conf.d/99-bad-proxy"
    box.host.run_expect([0], f"dpkg --purge --force-depends cuda-nvcc-13-1; rm -f {ARCHIVES}/cuda-nvcc-13-1_*.deb")
    box.host.run_expect([0], f"cat > /root/bad_proxy.py <<'PY'\n{PROXY.read_text()}\nPY")
    start = (
        f"setsid python3 /root/bad_proxy.py {how} >/dev/null 2>&1 </dev/null & echo $! > /run/bad-proxy.pid; sleep 1"
    )
    box.host.run_expect([0], start)
    box.host.run_expect([0], f"echo 'Acquire::http::Proxy::10.87.0.10 \"http://127.0.0.1:3999/\";' > {settings}")
    refused = box.converge()
    box.host.run_expect([0], f"rm {settings}; kill $(cat /run/bad-proxy.pid)")
    assert refused.code == 1
    text = errors(refused.output)
    assert said in text
    assert todo in text
    assert box.host.check_output("dpkg --audit | grep -c cuda-nvcc || true") == "0"
