# Sourced by the other scripts: makes the project's virtual environment.
#
#   make_environment NAME EXTRAS [PYTHON]
#
# leaves in $python the interpreter of an environment outside the checkout that holds
# fxflow (editable) with EXTRAS. One environment serves each checkout, NAME and Python;
# it is made anew when pyproject.toml changes. FXFLOW_VENV_DIR moves them all.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environments=${FXFLOW_VENV_DIR:-${XDG_CACHE_HOME:-${HOME:-~}/.cache}/fxflow/venvs}

make_environment() {
    local name=$1 extras=$2 base=${3:-python3} version stamp folder
    version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    stamp=$(cat "$root/pyproject.toml" <(echo "$root $extras") | cksum | cut -d' ' -f1)
    folder=$environments/$name-$version-$stamp
    python=$folder/bin/python
    # The mark is written last, so that an environment cut short is made again.
    if [[ ! -e $folder/.complete ]]; then
        rm -rf "$folder"
        "$base" -m venv "$folder" || return
        "$python" -m pip install --quiet --disable-pip-version-check \
            --editable "$root[$extras]" || return
        touch "$folder/.complete"
    fi
}
