"""How cards talk to each other: what a machine says of its links, and the settings of NCCL and SGLang that follow."""
