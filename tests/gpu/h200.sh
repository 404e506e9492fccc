#!/bin/bash
# Measures on one H200 what a cap of 64 running requests and CUDA graphs do to a 30B-A3B-shaped model (random weights).
# Usage: PYTHON=... MODEL=... OUT=... tests/gpu/h200.sh CONFIGURATION...   (from the root of a checkout)
#   PYTHON  an interpreter with SGLang 0.5.16 and gpubox's own requirements; MODEL a folder with config.json and tokenizer
#   OUT     where the runs go; each call of a configuration is one run, REPEAT sweeps (default 1)
# The attention backend is Triton and the sampler PyTorch, so that no FlashInfer is needed; prefill runs without graphs.
set -euo pipefail
: "${PYTHON:?}" "${MODEL:?}" "${OUT:?}"
REPEAT=${REPEAT:-1} CONCURRENCY=${CONCURRENCY:-1,256,512,1024} OUTPUT_TOKENS=${OUTPUT_TOKENS:-256} MEMORY=${MEMORY:-0.88}
common=(--model-path "$MODEL" --load-format dummy --attention-backend triton --sampling-backend pytorch
    --grammar-backend none --context-length 4096 --mem-fraction-static "$MEMORY" --disable-prefill-cuda-graph)
small=(1 8 16 32 64)
large=("${small[@]}" 128 192 256 384 512 640 768 896 1024)
status=0
for name in "$@"; do
    case $name in
        cap64-graph) flags=(--max-running-requests 64 --cuda-graph-bs-decode "${small[@]}") ;;
        uncapped-graph) flags=(--cuda-graph-bs-decode "${large[@]}") ;;
        cap64-nograph) flags=(--max-running-requests 64 --disable-cuda-graph) ;;
        uncapped-nograph) flags=(--disable-cuda-graph) ;;
        *) echo "unknown configuration $name: cap64-graph uncapped-graph cap64-nograph uncapped-nograph" >&2; exit 2 ;;
    esac
    "$PYTHON" -W ignore -c 'from gpubox.cli import main; main()' bench --local --python "$PYTHON" --label "h200-$name" \
        --concurrency "$CONCURRENCY" --prompts-per-client 1 --repeat "$REPEAT" --output-tokens "$OUTPUT_TOKENS" \
        --patience 150 --runs "$OUT" -- "${common[@]}" "${flags[@]}" || status=$?
done
exit "$status"
