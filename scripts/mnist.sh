#!/usr/bin/env bash
# Sets up an environment and trains on the complete MNIST.
# Arguments are passed to examples/mnist.py, for example --model mlp.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment examples examples "700 MB"
exec "$python" "$root/examples/mnist.py" "$@"
