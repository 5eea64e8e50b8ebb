#!/usr/bin/env bash
# The main job in one command: sets up an environment and trains on the complete MNIST.
# Arguments go to examples/mnist.py, for example --model mlp.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment examples examples "700 MB"
exec "$python" "$root/examples/mnist.py" "$@"
