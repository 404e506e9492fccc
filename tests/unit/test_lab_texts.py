"""Texts that the lab writes: LXC configurations, client settings, rules, packages."""

from pathlib import Path

import pytest

from gpubox.lab import clients, containers, network
from gpubox.lab.debs import Deb
from gpubox.lab.layers import Recipe, Stack

LAYERS = Stack((Path("/state/base/clients-1"), Path("/state/base/debian-2")), overlay=True)


def test_a_box_configuration_has_no_passthrough_and_keeps_the_labs_part_apart() -> None:
    lines = containers.box("gpu02", LAYERS, 1400).splitlines()
    assert "lxc.net.0.ipv4.address = 10.87.0.12/24" in lines
    assert "lxc.start.auto = 1" in lines
    assert lines[-1] == "lxc.include = /var/lib/lxc/gpu02/lab.conf"
    assert not [line for line in lines if "devices" in line or "mount.entry" in line]
    base = "/var/lib/gpubox-lab/base"
    assert f"lxc.rootfs.path = overlay:{base}/clients-1:{base}/debian-2:/var/lib/lxc/gpu02/rootfs" in lines


def test_without_overlayfs_a_box_stands_on_its_own_copy() -> None:
    text = containers.box("gpu01", Stack((Path("/state/base/clients-1"),), overlay=False), 1500)
    assert "lxc.rootfs.path = dir:/var/lib/lxc/gpu01/rootfs\n" in text


def test_each_box_has_an_address_and_a_hardware_address_of_its_own() -> None:
    configs = [containers.box(name, LAYERS, 1500) for name in list(network.addresses())[1:]]
    for key in ("hwaddr", "ipv4.address"):
        values = [line for text in configs for line in text.splitlines() if key in line]
        assert len(set(values)) == network.MAX_BOXES


def test_the_labs_part_mounts_the_stand_ins_at_the_real_paths() -> None:
    text = containers.box_lab(containers.box_mounts("gpu01", [Path("/srv/wheels")]))
    for target in ("proc/devices", "proc/driver", "sys/module", "srv/wheels", "root/.cache/uv"):
        assert f" {target} none bind," in text


def test_rules_translate_only_out_of_the_default_link() -> None:
    text = network.rules("enp1s0")
    assert 'ip saddr 10.87.0.0/24 oifname "enp1s0" masquerade' in text
    assert text.count("size set rt mtu") == 2


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, ""),
        ({"HOME": "/root", "PIP_TARGET": "/x", "GIT_SSL_CAINFO": "/x"}, ""),
        ({"PIP_FIND_LINKS": "/srv/wheels"}, "PIP_FIND_LINKS=/srv/wheels\n"),
        ({"SSL_CERT_FILE": "/home/me/ca.pem"}, "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\n"),
        ({"UV_INDEX_URL": "https://pypi.example/simple"}, "UV_INDEX_URL=https://pypi.example/simple\n"),
        (
            {"https_proxy": "http://proxy:3128", "no_proxy": "intern"},
            "https_proxy=http://proxy:3128\nno_proxy=intern,localhost,127.0.0.1,10.87.0.0/24\n",
        ),
    ],
)
def test_environment_carries_only_what_is_set(environ: dict[str, str], expected: str) -> None:
    assert clients.environment(environ, "10.87.0.0/24") == expected


def test_apt_settings_are_those_of_the_way_to_the_packages() -> None:
    dump = (
        'Acquire::http::Proxy "http://proxy:3128";\nAcquire::Check-Valid-Until "false";\nAcquire::Languages "";\n'
        'APT::Architecture "amd64";\nAcquire::https::CaInfo "/etc/ssl/x.pem";\n'
    )
    kept = [line.split(" ")[0] for line in clients.apt_settings(dump).splitlines()]
    assert kept == ["Acquire::http::Proxy", "Acquire::Check-Valid-Until", "Acquire::https::CaInfo"]


def test_folders_named_as_indexes_are_shared_once(tmp_path: Path) -> None:
    for name in ("wheels", "pypi/simple", "pypi/files"):
        (tmp_path / name).mkdir(parents=True)
    settings = (
        f"[global]\nextra-index-url = file://{tmp_path}/pypi/simple https://pypi.org/simple\ncert = {tmp_path}/x\n"
    )
    found = clients.folders({"PIP_FIND_LINKS": f"{tmp_path}/wheels {tmp_path}/missing"}, settings)
    assert found == [tmp_path / "pypi", tmp_path / "wheels"]


def test_certificates_are_told_apart_and_counted_once() -> None:
    one, two = (f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" for body in "AB")
    assert clients.certificates(f"# two\n{two}{one}{two}") == [one, two]


def test_control_says_that_it_is_a_stand_in() -> None:
    text = Deb("cuda-nvcc-13-1", "13.1.115-1", "CUDA nvcc", ("cuda-crt-13-1", "libnvvm-13-1")).control()
    assert "Depends: cuda-crt-13-1, libnvvm-13-1\n" in text
    assert "STAND-IN" in text


def test_a_layer_is_made_anew_when_its_recipe_or_what_is_below_changes() -> None:
    recipe, below = Recipe("clients", "true", {"etc/x": "1"}), Stack((Path("/b/debian-2"),), overlay=True)
    others = [
        (Recipe("clients", "false", {"etc/x": "1"}), below),
        (Recipe("clients", "true", {"etc/x": "2"}), below),
        (recipe, Stack((Path("/b/debian-3"),), overlay=True)),
        (recipe, Stack((Path("/b/debian-2"),), overlay=False)),
    ]
    assert recipe.digest(below) not in {other.digest(stack) for other, stack in others}
