"""Pages made from code and data are in step with them, and complete."""

from gpubox.pages import make as pages
from gpubox.rules.registry import rules
from gpubox.support import paths


def test_pages_are_in_step() -> None:
    base = paths.root() / "docs"
    for name, text in pages.all_pages().items():
        assert (base / name).is_file(), f"docs/{name} is missing: run `gpubox docs`"
        assert (base / name).read_text() == text, f"docs/{name} is out of step: run `gpubox docs`"


def test_every_rule_and_setting_has_its_line() -> None:
    made = pages.all_pages()
    assert all(f"### `{name}`" in made["rules.md"] for name in rules())
    for setting in ("venv_path", "toolkits", "start_timeout_s", "torch_cuda", "module_license"):
        assert f"- `{setting}` (" in made["settings.md"]
