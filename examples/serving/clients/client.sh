#!/usr/bin/env bash
# Asks a model over HTTP with curl: client.sh http://127.0.0.1:8000 MODEL 1 2 3
set -euo pipefail
address=$1 model=$2
shift 2
row=$(IFS=,; echo "$*")
curl --silent --show-error --fail-with-body --max-time 30 \
    --header "Content-Type: application/json" --data "[[$row]]" "$address/predict/$model"
echo
