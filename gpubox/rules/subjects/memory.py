"""Does it fit: weights, KV cache and CUDA graphs against the memory of the cards; sizes that must divide."""

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from gpubox.rules.context import Context
from gpubox.rules.finding import CATALOGUE, Told
from gpubox.rules.registry import rule
from gpubox.server import parallel

_RECORDED = "recorded deployment: 453 GB of expert weights against cards of 96 GB"
_GIB = 1024**3


@dataclass(frozen=True)
class Sum:
    """Memory of one card, in GiB."""

    card: float
    fraction: float
    weights: float
    kv: float
    kv_tokens: int
    reserve: float

    @property
    def static(self) -> float:
        """What SGLang keeps for weights and KV cache."""
        return self.card * self.fraction

    @property
    def room_tokens(self) -> int:
        """Tokens whose KV cache fits beside the weights."""
        return int((self.static - self.weights) / self.kv * self.kv_tokens)

    @override
    def __str__(self) -> str:
        """The sum, printed."""
        both = self.weights + self.kv
        used = f"weights {self.weights:.1f} + KV cache of {self.kv_tokens:,} tokens {self.kv:.1f} = {both:.1f}"
        left = f"{self.card - self.static:.1f} left for graphs and activations, which want at least {self.reserve:.1f}"
        return f"{used} GiB a card, of {self.card:.1f} x {self.fraction:.3f} = {self.static:.1f}; {left}"


@rule(
    "memory-fit",
    "error",
    "Weights, KV cache and CUDA graphs fit into the cards.",
    _RECORDED,
    "https://github.com/sgl-project/sglang/issues/5285 (out of memory at graph capture)",
    "read in the wheels: what SGLang itself reserves for graphs",
    needs=CATALOGUE,
    refutable=True,
)
def fit(c: Context) -> Iterator[Told]:
    """The sum is printed whether it fits or not."""
    if not c.gpu:
        return
    total = arithmetic(c)
    if total.weights + total.kv > total.static:
        todo = "more cards, a smaller model, a shorter --context-length, or a larger --mem-fraction-static"
        yield Told(str(total), "weights and KV cache within the fraction", todo)
    elif total.card - total.static < total.reserve:
        yield Told(str(total), "room outside the fraction", "lower --mem-fraction-static, or capture smaller graphs")
    else:
        yield Told(f"{total}; room for {total.room_tokens:,} tokens in all", "", "", "info")


@rule(
    "expert-replication",
    "error",
    "Replicated experts fit into the cards.",
    _RECORDED + ": expert parallelism with replication does not fit",
    needs=CATALOGUE,
    refutable=True,
)
def replication(c: Context) -> Iterator[Told]:
    """Redundant experts, or expert groups that each hold all of them."""
    if not c.gpu or not c.model.experts:
        return
    redundant = int(c.number("ep-num-redundant-experts") or 0)
    copies = (1 + redundant / c.model.experts) * c.size("moe-dp-size")
    total = arithmetic(c)
    if copies > 1 and total.weights * copies + total.kv > total.static:
        weights = f"{total.weights * copies:.1f} GiB of weights a card"
        found = f"experts {copies:.2f} times: {weights}, of {total.static:.1f} that are to hold them"
        yield Told(found, "each expert once, shared out by tensor parallelism", "take the replication out")


@rule(
    "decode-graph-size",
    "error",
    "CUDA graphs are captured only up to a batch that fits beside the model.",
    "https://github.com/sgl-project/sglang/pull/29580 (512 runs out of memory on 96 GB, 256 fits)",
    needs=CATALOGUE,
    refutable=True,
)
def graphs(c: Context) -> Iterator[Told]:
    """SGLang's own default is 512 on cards like these, lowered to --max-running-requests."""
    if not c.gpu or graphs_off(c):
        return
    size, limit = graph_size(c), _graph_limit(c)
    if limit is not None and size > limit:
        name = "cuda-graph-max-bs-decode" if c.spec("cuda-graph-max-bs-decode") else "cuda-graph-max-bs"
        yield Told(f"graphs up to {size} concurrent requests", f"at most {limit} on {c.card.name}", f"--{name} {limit}")


@rule(
    "tensor-parallel-cards",
    "error",
    "The server uses as many cards as there are.",
    "recorded deployment: tensor parallelism over all eight cards",
    needs=("release", "card"),
)
def cards(c: Context) -> Iterator[Told]:
    """Against the profile's cards, and those that the box is given."""
    if not c.gpu:
        return
    wanted = world_size(c)
    _ = c.card
    given = c.settings.gpus
    there = c.card_count if given == "all" else len(given)
    if wanted > there:
        yield Told(f"the flags ask for {wanted} cards, there are {there}", f"{there} or fewer", "lower --tp-size")
    elif wanted < there:
        yield Told(
            f"the flags use {wanted} of {there} cards", f"{there}", "raise --tp-size, or give the box fewer", "warning"
        )


@rule(
    "tensor-parallel-heads",
    "error",
    "Attention heads and experts divide evenly over the cards.",
    "read in the wheels: SGLang asserts it while loading",
    needs=("release", "model"),
    refutable=True,
)
def heads(c: Context) -> Iterator[Told]:
    """Heads of the catalogue, or of the model that lies on the box."""
    tp, ep = c.size("tp-size"), c.size("ep-size")
    on_box = c.facts.heads if c.facts else None
    if on_box is not None and on_box != c.model.heads:
        found = f"the model on the box has {on_box} heads, the catalogue says {c.model.heads}"
        yield Told(found, "the model that the profile names", "check its path and `model.catalog`")
    count = on_box or c.model.heads
    if count % tp:
        fits = ", ".join(str(n) for n in (1, 2, 4, 8, 16) if count % n == 0)
        yield Told(f"--tp-size {tp} with {count} attention heads", f"a divisor, as {fits}", "change it")
    if c.model.experts and ep > 1 and (c.model.experts % ep or tp % ep):
        found = f"--ep-size {ep} with {c.model.experts} experts and --tp-size {tp}"
        yield Told(found, "a divisor of both", "change it")


def arithmetic(c: Context) -> Sum:
    """The sum for one card."""
    shards = c.size("tp-size") * c.size("pp-size")
    tokens = int(c.number("max-total-tokens") or c.number("context-length") or c.number("chunked-prefill-size") or 8192)
    tokens = max(tokens, 1)
    whole = kv_bytes(c) * tokens / _GIB / c.size("pp-size")
    kv = whole if c.model.kv_replicated else whole / min(c.size("tp-size"), c.model.kv_heads)
    fraction = c.number("mem-fraction-static") or _own_fraction(c)
    return Sum(c.card.memory_mib / 1024, fraction, c.model.weights_gib / shards, kv, tokens, _graph_reserve(c))


def kv_bytes(c: Context) -> int:
    """Bytes for one token, all layers; `auto` is FP8 for sparse attention on SM12x, the model's own type elsewhere."""
    kind = c.text("kv-cache-dtype") or "auto"
    if kind == "auto":
        kind = "fp8_e4m3" if c.model.attention == "dsa" and c.sm12 else "bfloat16"
    return c.model.kv_bytes.get("fp8_e4m3" if kind.startswith("fp8") else kind, max(c.model.kv_bytes.values()))


def world_size(c: Context) -> int:
    """Cards that the flags ask for on one machine."""
    attention = c.on("enable-dp-attention")
    return parallel.cards(c.size("tp-size"), c.size("pp-size"), c.size("dp-size"), c.size("nnodes"), attention)


def graphs_off(c: Context) -> bool:
    """Whether decode runs without CUDA graphs."""
    flags = ("disable-cuda-graph", "disable-decode-cuda-graph")
    return any(c.spec(f) and c.on(f) for f in flags) or c.text("cuda-graph-backend-decode") == "disabled"


def graph_size(c: Context) -> int:
    """Largest decode batch that is captured."""
    listed = c.flag("cuda-graph-bs-decode") or c.flag("cuda-graph-bs")
    sizes = [int(item) for item in (listed if isinstance(listed, list) else []) if str(item).isdecimal()]
    given = c.number("cuda-graph-max-bs-decode") or c.number("cuda-graph-max-bs")
    own = 512 if c.size("tp-size") >= 4 else 256
    return int(min(max(sizes) if sizes else given or own, c.number("max-running-requests") or own * 100))


def _graph_limit(c: Context) -> int | None:
    """For a card of this size; a smaller card than any that was seen gets no limit, for nobody knows it."""
    size = round(c.card.memory_mib / 1024)
    limits = [limit for card, limit in sorted(c.model.decode_graph_max_bs.items()) if card <= size]
    return limits[-1] if limits else None


def _graph_reserve(c: Context) -> float:
    """SGLang's own estimate without activations: 512 MiB, 2 MiB a request of the largest graph, 1 GiB at TP8."""
    graphs = 0 if graphs_off(c) else graph_size(c) * 2
    return (512 + graphs + c.size("tp-size") * c.size("pp-size") / 8 * 1024) / 1024


def _own_fraction(c: Context) -> float:
    """What SGLang takes where nothing is given: all but its reserve and 1.5 MiB for each token of a prefill chunk."""
    chunk = max(c.number("chunked-prefill-size") or 8192, 2048)
    return 1 - (_graph_reserve(c) + chunk * 1.5 / 1024) / (c.card.memory_mib / 1024)
