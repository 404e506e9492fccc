"""What clients meet: who may ask, how many at once, how fast."""

from collections.abc import Iterator

from gpubox.remote import secrets
from gpubox.rules.context import Context
from gpubox.rules.finding import Told
from gpubox.rules.registry import rule
from gpubox.rules.subjects.memory import graphs_off

_LOOPBACK = {"", "127.0.0.1", "localhost", "::1"}
_FEW = 256


@rule(
    "api-open",
    "error",
    "Nobody can reach the API without a key, unless the profile says that its network is private.",
    "recorded deployments: --host 0.0.0.0 without --api-key",
    "seen: /health and /metrics answer without the key even where there is one",
)
def api_open(c: Context) -> Iterator[Told]:
    """An address that is not loopback, no `api_key_file` of the box, and nothing said about the network."""
    host = str(c.profile.flags.get("host") or "")
    if host in _LOOPBACK or c.settings.api_key_file is not None or c.profile.flags.get("api-key"):
        return
    if "private-network" in {c.settings.exposure, c.profile.exposure}:
        found = f"--host {host} without a key, on a network that the profile calls private"
        yield Told(found, "", "see that nobody else reaches it", "info")
        return
    todo = "api_key_file of the box, or host: 127.0.0.1, or exposure: private-network of the box if that is true"
    yield Told(f"--host {host} lets everybody who reaches the box use the model", "a key, or a private address", todo)


@rule(
    "secret-in-profile",
    "error",
    "No secret stands in a profile: it would be in the process list, in logs and in the repository.",
    "seen: SGLang logs its arguments at start, --api-key in clear, and returns them from /server_info",
)
def secret(c: Context) -> Iterator[Told]:
    """By name and by look; the value is never printed."""
    todo = "take it out; for the API key there is api_key_file of the box, for the hub hub.token_file"
    for name, value in c.profile.flags.items():
        if secrets.data(value, f"--{name}") != value:
            yield Told(f"--{name} holds a secret", "no secret in a profile", todo)
    for name, text in c.environment.items():
        if secrets.is_secret(name, text):
            yield Told(f"environment variable {name} holds a secret", "no secret in a profile", todo)


@rule(
    "running-request-cap",
    "warning",
    "A throughput profile does not keep its clients waiting in a queue.",
    "recorded deployment: a cap of 64 starved 1,024 clients",
    "measured on one H200, SGLang 0.5.16: a cap of 64 cost 3.9 to 5.8 times the throughput at 1,024 clients",
    "measured on one H200 with equal prompts: a cap of 64 cost 2.2 to 3.2 times at 256 to 1,024 clients",
    needs=("release",),
)
def cap(c: Context) -> Iterator[Told]:
    """Throughput comes from large batches."""
    given = c.number("max-running-requests")
    if c.profile.purpose == "throughput" and given is not None and given < _FEW:
        found = f"--max-running-requests {given:.0f} in a throughput profile"
        yield Told(found, f"{_FEW} or more, or none", "take it out, or measure at your number of clients")


@rule(
    "cuda-graphs",
    "warning",
    "CUDA graphs of decode are on, unless a measurement of this box said otherwise.",
    "measured on one H200, SGLang 0.5.16: without graphs 856-8,815 tok/s, with them 3,264-13,048, at every concurrency",
    "recorded deployment: switched off for throughput, together with four other changes, so its share is unknown",
    needs=("release",),
)
def graphs(c: Context) -> Iterator[Told]:
    """A property of the profile's purpose: latency always wants them."""
    if c.gpu and graphs_off(c):
        found = f"decode runs without CUDA graphs in a {c.profile.purpose} profile"
        yield Told(found, "graphs up to the batch that is served", "take it out, or measure both")


@rule(
    "hub-download",
    "warning",
    "The model lies on the box before the server starts.",
    "recorded deployment: unauthenticated downloads were rate-limited, and happened during a restart",
    "https://github.com/huggingface/huggingface_hub/issues/4223 (a download that ended early exits 0)",
)
def download(c: Context) -> Iterator[Told]:
    """A hub name instead of a path, and no revision that could be fetched before."""
    path = c.profile.model_path
    if path and not path.startswith("/") and c.profile.model.revision is None:
        todo = "give `model.revision`, or the path of a folder"
        yield Told(
            f"--model-path {path} is a name on the hub, without a revision", "weights fetched before the start", todo
        )
