#!/usr/bin/env bash
# Runs all tests: sets up environments outside the checkout, then runs the linters, the
# type checker, and the suite (with doctests, notebooks, docs). If the machine has other
# Pythons, the newest runs a sixteenth of the suite's files, and the others run the smoke
# tests. Each commit runs another thirty-sixth of the slow tests and of tests with many
# cases, and another sixteenth of the files.
# Arguments are passed to pytest; then nothing else runs.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"

# Tests start hundreds of processes, each of which would compile fxflow's sources again.
unset PYTHONDONTWRITEBYTECODE
make_environment test test "2.4 GB"
install_clients tests/compat/jax/clients.txt clients
install_clients tests/serve/clients.txt clients-serve
install_clients tests/frontends/clients.txt clients-frontends
install_node_packages tests/frontends/node_packages.txt clients-node
# What tests, and the processes that they kill, leave in the temporary folder goes at the
# end. The name is short because paths of Unix sockets are.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/fx-XXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
if (($#)); then
    "$python" -m pytest "$@"
    exit
fi

# Prints an interpreter of the given version, from PATH or from pyenv, that starts (a
# pyenv shim for a version that is not selected does not).
find_python() {
    local candidate
    for candidate in "python$1" \
        "$(pyenv root 2>/dev/null || echo /nowhere)"/versions/"$1".*/bin/python; do
        if "$candidate" -c 'import venv' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

step() { printf '\n== %s\n' "$*"; }

echo "About 20 minutes on 2 cores: lint and types 1 minute, other Pythons 3, the suite the rest."
step "lint"
"$python" -m ruff check .
"$python" -m ruff format --check .
"$python" scripts/words.py
step "types (half a minute)"
"$python" -m mypy

main=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
others=() newest=
for version in 3.11 3.12 3.13; do
    if [[ $version != "$main" && -n $(find_python "$version") ]]; then
        others+=("$version") newest=$version
    fi
done

#   run_suite [ARGUMENT...]
#
# A file stays on one worker, so that its tests share compiled programs. The files run in
# the order of tests/conftest.py, which spreads files that start processes, since these
# mostly wait. For the same reason there is one more worker than there are cores.
cores=$(getconf _NPROCESSORS_ONLN)
workers=$((cores < 3 ? cores + 1 : 4))
# Each commit runs another thirty-sixth of the slow tests and of the cases of long tests,
# and another sixteenth of the tests of `fxflow.scipy`. A test that takes a quarter of an
# hour hangs: it ends the run, which prints where each of its threads is. So does a worker
# that crashes, since another one would run the same test again, without end.
commit=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)
run_suite() {
    "$python" -m pytest -q --durations=10 --draw-cases "$((16#$commit))/36" \
        --numprocesses "$workers" --dist loadfile --no-loadscope-reorder \
        --max-worker-restart 0 -o faulthandler_timeout=900 \
        -o faulthandler_exit_on_timeout=true "$@"
}

suite=$python
for version in "${others[@]}"; do
    if [[ $version == "$newest" ]]; then
        step "a sixteenth of the suite on Python $version, without slow tests (2 minutes)"
        make_environment test test "2.4 GB" "$(find_python "$version")"
        run_suite --draw-files "$((16#$commit))/16" -m "not slow and not soak"
    else
        step "smoke test on Python $version (20 s)"
        make_environment smoke smoke "700 MB" "$(find_python "$version")"
        "$python" -m pytest -q tests/test_smoke.py
    fi
done
python=$suite

# Last, so that pytest's closing line closes the output.
step "suite on Python $main (13 minutes)"
run_suite
