"""How many cards a server takes on its machine, out of the sizes that its flags name."""


def cards(tp: int, pp: int = 1, dp: int = 1, nodes: int = 1, attention_dp: bool = False) -> int:
    """As SGLang shares its ranks out (read in sglang 0.5.9 and 0.5.23: entrypoints/engine.py, the ranges of pipeline
    and tensor ranks of one node; server_args.py, compute_world_size).

    + dp: replicas of the whole, each on cards of its own
    + nodes: machines that one server is spread over
    + attention_dp: --enable-dp-attention, by which `dp` counts groups inside of the tensor-parallel group
    """
    stages_a_node = max(pp // nodes, 1)
    nodes_a_stage = max(nodes // pp, 1)
    replicas = 1 if attention_dp else dp
    return max(1, stages_a_node * (tp // nodes_a_stage) * replicas)
