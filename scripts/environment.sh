# Sourced by the other scripts: makes the project's virtual environment.
#
#   make_environment NAME EXTRAS DISK [PYTHON]
#
# sets $python to the interpreter of an environment outside the checkout that contains
# fxflow (editable) with EXTRAS. DISK is the disk space that it takes, as text. There is
# one environment for each checkout, NAME and Python; when pyproject.toml changes, a new
# one replaces it. FXFLOW_VENV_DIR is the folder of all environments.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Without HOME, the home folder from the user database; without that, the checkout.
home=${HOME:-$(cd ~ 2>/dev/null && pwd)} || home=$root
environments=${FXFLOW_VENV_DIR:-${XDG_CACHE_HOME:-$home/.cache}/fxflow/venvs}

make_environment() {
    local name=$1 extras=$2 disk=$3 base=${4:-python3} version stamp folder mark
    if ! "$base" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
    then
        echo "$base must be Python 3.11 or newer, with venv and pip" \
            "(Debian: apt install python3-venv)" >&2
        return 1
    fi
    version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    stamp=$(cat "$root/pyproject.toml" <(echo "$root $extras") | cksum | cut -d' ' -f1)
    folder=$environments/$name-$version-$stamp
    python=$folder/bin/python
    # The mark is written last, so that an incomplete environment is made again.
    if [[ ! -e $folder/.complete ]]; then
        echo "Making a Python environment, once: 1 to 3 minutes, $disk of disk, in"
        echo "    $folder"
        rm -rf "$folder"
        # The one that it replaces.
        for mark in "$environments/$name-$version"-*/.complete; do
            if [[ -e $mark && $(< "$mark") == "$root" ]]; then
                rm -rf "$(dirname "$mark")"
            fi
        done
        "$base" -m venv "$folder" || return
        "$python" -m pip install --disable-pip-version-check \
            --editable "$root[$extras]" || return
        echo "$root" > "$folder/.complete"
    fi
}

#   install_clients LIST FOLDER
#
# installs the packages of LIST, a file of the checkout, into FOLDER in the environment
# of $python. Only the tests that need them put this folder on the path. Dependencies are
# not installed, since they include jax, or other versions than fxflow needs. If no index
# is available, the tests that need the packages are skipped, with a message.
install_clients() {
    local list=$root/$1 folder
    folder=$("$python" -c 'import sys; print(sys.prefix)')/$2
    if cmp -s "$list" "$folder/.installed"; then return; fi
    echo "Installing what $1 lists: half a minute, 50 MB of disk, in"
    echo "    $folder"
    rm -rf "$folder"
    if "$python" -m pip install --disable-pip-version-check --quiet --no-deps \
        --timeout 15 --retries 1 --target "$folder.part" --requirement "$list"
    then
        mv "$folder.part" "$folder"
        cp "$list" "$folder/.installed"
    else
        rm -rf "$folder.part"
        echo "They cannot be installed; the tests of them are skipped." >&2
    fi
}

#   install_node_packages LIST FOLDER
#
# does the same with the npm packages of LIST.
install_node_packages() {
    local list=$root/$1 folder
    folder=$("$python" -c 'import sys; print(sys.prefix)')/$2
    if cmp -s "$list" "$folder/.installed"; then return; fi
    echo "Installing what $1 lists: 150 MB of disk, in"
    echo "    $folder"
    rm -rf "$folder"
    if command -v npm > /dev/null && mkdir -p "$folder.part" &&
        xargs npm install --prefix "$folder.part" --silent --no-audit --no-fund \
            --ignore-scripts < "$list"
    then
        mv "$folder.part" "$folder"
        cp "$list" "$folder/.installed"
    else
        rm -rf "$folder.part"
        echo "They cannot be installed; the tests of them are skipped." >&2
    fi
}
