"""The report in headless Chromium (Debian: `chromium`): it loads without errors and without a network, and draws."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpubox.bench import library, report

NAMES = ("h200-uncapped-graph", "h200-cap64-graph", "h200-uncapped-nograph", "glm-5-lxc")
PHONE, DESK = "360,4000", "1280,3000"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "page.html"
    report.write([library.find(name, Path("runs")) for name in NAMES], path)
    return path


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Chromium with a proxy that does not exist: whatever it fetched from outside would fail and be logged."""
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0"]
    own = [f"--user-data-dir={page.parent}/profile", "--proxy-server=127.0.0.1:9"]
    return subprocess.run(
        [str(CHROMIUM), *words, *own, *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )


def test_it_loads_without_errors_and_draws_every_chart(page: Path) -> None:
    shown = browse(page, "--dump-dom")
    assert not [line for line in shown.stderr.splitlines() if ":CONSOLE" in line]
    figures = re.findall(r"<figure>.*?</figure>", shown.stdout, re.DOTALL)
    assert len(figures) == 4
    assert all(figure.count("<path") > 10 for figure in figures)


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_painted_light_and_dark_on_phone_and_desk(page: Path, size: str, dark: bool) -> None:
    picture = page.parent / "picture.png"
    theme = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    browse(page, f"--screenshot={picture}", f"--window-size={size}", *theme)
    corner, colours = _corner(picture)
    assert (max(corner) < 80) is dark
    assert colours > 50


def test_it_is_no_wider_than_a_phone(page: Path) -> None:
    """Wide tables scroll in their own frame; the page itself does not."""
    probe = page.with_name("probe.html")
    measure = "<script>document.title = 'wide ' + document.documentElement.scrollWidth</script></body>"
    text = page.read_text().replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'")
    probe.write_text(text.replace("</body>", measure))
    found = re.search(r"<title>wide (\d+)</title>", browse(probe, "--dump-dom", "--window-size=500,900").stdout)
    assert found is not None
    assert int(found[1]) <= 500


def _corner(picture: Path) -> tuple[list[int], int]:
    """The colour of the page's upper right corner (0 to 255), and how many colours there are in the picture."""
    from matplotlib.image import imread

    pixels = (imread(picture)[:, :, :3] * 255).astype(int)
    return [int(part) for part in pixels[2, -3]], len(
        {tuple(pixel) for pixel in pixels[::4, ::4].reshape(-1, 3).tolist()}
    )
