"""What rules judge: a box's wishes, the catalogue's facts about them, and facts from the box where there are any."""

from dataclasses import dataclass
from math import isnan
from typing import Literal, TypeVar

from gpubox.catalog import Card, Matrix, ModelFacts, cards, matrix, models, release
from gpubox.catalog.release import Flag, Release
from gpubox.hosts import Box
from gpubox.rules.facts import BoxFacts, CardFact
from gpubox.rules.finding import UnknownError
from gpubox.settings.host import BoxSettings
from gpubox.settings.profile import FlagValue, Profile, settings_digest
from gpubox.settings.stack import Stack

T = TypeVar("T")
Place = Literal["bare", "lxc", "vm"]
_MOST = 2.0**63
"""More than anything has; products and quotients of such numbers stay within a float."""


@dataclass(frozen=True)
class Context:
    """One box. Asking for what is not known raises `UnknownError`, so ask for the profile's own words first."""

    box: Box
    facts: BoxFacts | None
    known_release: Release | None
    pins: dict[str, str]
    """Name -> version of the stack's locked packages."""

    @property
    def settings(self) -> BoxSettings:
        """Of the box."""
        return self.box.settings

    @property
    def profile(self) -> Profile:
        """Of the box."""
        return self.box.profile

    @property
    def stack(self) -> Stack:
        """Of the box."""
        return self.box.stack

    @property
    def seen_running(self) -> bool:
        """Whether a server ran with the very settings of the profile, on the release of its stack, when it was adopted.

        What people change afterwards was not seen.
        """
        seen, profile = self.profile.adopted, self.profile
        if seen is None or seen.sglang != self.stack.sglang:
            return False
        return seen.settings == settings_digest(profile.flags, profile.environment, profile.python_args)

    @property
    def environment(self) -> dict[str, str]:
        """As the profile gives it."""
        return self.profile.environment

    @property
    def matrix(self) -> Matrix:
        """What fits what."""
        return matrix()

    @property
    def release(self) -> Release:
        """The SGLang that the stack pins."""
        if self.known_release is None:
            version = self.stack.sglang
            todo = f"gpubox catalog extract {version}, and commit the file"
            raise UnknownError("release", f"SGLang {version} is not in the catalogue", todo)
        return self.known_release

    @property
    def gpu(self) -> bool:
        """Whether the server runs on cards at all."""
        return self.stack.device == "cuda"

    @property
    def card(self) -> Card:
        """The card that the profile is for."""
        wish = self.profile.cards
        if wish is None or wish.model not in cards():
            found = "the profile names no cards" if wish is None else f"card {wish.model!r} is not in the catalogue"
            raise UnknownError(
                "card", found, f"cards: {{model: one of {', '.join(cards())}, count: ...}} in the profile"
            )
        return cards()[wish.model]

    @property
    def card_count(self) -> int:
        """How many cards the profile is for."""
        return self.profile.cards.count if self.profile.cards else 0

    @property
    def sm12(self) -> bool:
        """Whether the server runs on SM120 or SM121."""
        return self.gpu and self.card.is_sm12

    @property
    def model(self) -> ModelFacts:
        """What the catalogue knows of the model."""
        key = self.profile.model.catalog
        if key is None or key not in models():
            found = "the profile names no catalogue model" if key is None else f"model {key!r} is not in the catalogue"
            raise UnknownError("model", found, f"model: {{catalog: one of {', '.join(models())}}}, or add it")
        return models()[key]

    @property
    def place(self) -> Place:
        """Where the server runs: as the box says of itself, as the inventory implies, as the profile was made for."""
        if self.facts is not None and self.facts.virtualisation is not None:
            return self.facts.virtualisation
        if self.settings.hypervisor is not None:
            return "lxc"
        if len(self.profile.runs_on) == 1:
            return self.profile.runs_on[0]
        raise UnknownError("facts", "not known whether the box is a VM or bare metal", "run the check on the box")

    @property
    def found_cards(self) -> list[CardFact]:
        """Cards that the box has."""
        return self._fact("cards", self.facts.cards if self.facts else None)

    @property
    def driver(self) -> str:
        """Version of the loaded driver."""
        return self._fact("driver version", self.facts.driver if self.facts else None)

    @property
    def module_license(self) -> str:
        """Of the driver's kernel module."""
        return self._fact("licence of the kernel module", self.facts.module_license if self.facts else None)

    @property
    def p2p(self) -> bool:
        """Whether data went right from card to card."""
        return self._fact("peer-to-peer between cards", self.facts.p2p if self.facts else None)

    @property
    def distribution(self) -> str:
        """Of the box."""
        return self._fact("distribution", self.facts.distribution if self.facts else None)

    @property
    def proxies(self) -> dict[str, str]:
        """Variables about proxies that systemd gives every service of the box."""
        return self._fact("systemd's own environment", self.facts.proxies if self.facts else None)

    def spec(self, name: str) -> Flag | None:
        """The release's flag for a name; None: it has none."""
        return self.release.find(name)

    def flag(self, name: str) -> FlagValue:
        """What the profile says for the flag that the release takes `name` for; None: nothing, or false."""
        wanted = self.spec(name)
        for given, value in self.profile.flags.items():
            if value is not None and value is not False and (given == name or (wanted and self.spec(given) is wanted)):
                return value
        return None

    def on(self, name: str) -> bool:
        """Whether a flag is given."""
        return self.flag(name) is not None

    def text(self, name: str) -> str:
        """A flag's value as one word; empty: not given."""
        value = self.flag(name)
        return "" if value is None else str(value)

    def number(self, name: str) -> float | None:
        """A flag's value as a number; None: not given, or no number. One beyond `_MOST` counts as that."""
        try:
            value = float(self.text(name))
        except ValueError:
            return None
        return None if isnan(value) else max(-_MOST, min(value, _MOST))

    def size(self, name: str) -> int:
        """A flag of parallelism: 1 where it is not given or no sensible number."""
        return max(1, int(self.number(name) or 1))

    def locked(self, package: str) -> str | None:
        """Version of a package that the service gets: the stack's lock, else the release's pin."""
        return self.pins.get(package) or self.release.pin(package)

    @staticmethod
    def _fact(what: str, value: T | None) -> T:
        if value is None:
            raise UnknownError("facts", f"not known from the box: {what}", "run the check on the box")
        return value


def of(box: Box, facts: BoxFacts | None = None) -> Context:
    """The context of a box. Error: a lock of its stack cannot be read."""
    known = release.load(box.stack.sglang) if box.stack.sglang in release.versions() else None
    return Context(box, facts, known, dict(box.stack.pins))
