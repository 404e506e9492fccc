"""A client that asks all along, and remembers what it got."""

import threading
import time
from types import TracebackType

import httpx

from gpubox.hosts import Box

PATIENCE_S = 60
"""For one answer: with the whole burst of the readiness check before it, on a machine with two slow cores."""


class Client:
    """Asks the box's server its known question, several times a second, from `with` to its end."""

    def __init__(self, box: Box) -> None:
        self.url = f"http://{box.address}:{box.profile.port}/v1/chat/completions"
        known = box.profile.known_answer
        self._prompt, self._answer = (known.prompt, known.answer) if known else ("hello", "")
        self._model = str(box.profile.flags.get("served-model-name", box.profile.model_path))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask_all_along)
        self.seen: list[tuple[float, bool]] = []
        """When each answer came (monotonic seconds), and whether it was the known one."""
        self.wrong: list[str] = []
        """Answers that were other than the known one."""

    def __enter__(self) -> "Client":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def failures(self) -> int:
        """How many got no good answer."""
        return sum(not good for _, good in self.seen)

    @property
    def gaps(self) -> int:
        """How many times good answers stopped and came again, or never came again."""
        return sum(before and not after for (_, before), (_, after) in zip(self.seen, self.seen[1:], strict=False))

    @property
    def answers_now(self) -> bool:
        """Whether the last one was good."""
        return bool(self.seen) and self.seen[-1][1]

    def ask(self) -> bool:
        """One question."""
        body = {"model": self._model, "messages": [{"role": "user", "content": self._prompt}], "temperature": 0}
        try:
            reply = httpx.post(self.url, json=body, timeout=PATIENCE_S, trust_env=False).raise_for_status()
            text = str(reply.json()["choices"][0]["message"]["content"] or "").strip()
        except (httpx.HTTPError, ValueError, LookupError):
            return False
        if text != self._answer:
            self.wrong.append(text)
        return text == self._answer

    def _ask_all_along(self) -> None:
        while not self._ended.is_set():
            good = self.ask()
            self.seen.append((time.monotonic(), good))
            self._ended.wait(0.2)
