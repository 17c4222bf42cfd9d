# Sourced by scripts/demo and scripts/check: the checkout's one virtual environment.
# It is made once; what was installed is remembered by a hash of pyproject.toml and
# constraints.txt, so that a second run installs nothing.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=${GRAPHSYS_VENV:-$root/.venv}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

# Print the first Python that is 3.11 or newer and can make virtual environments.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3 python; do
        if "$candidate" -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    fail "no python3.11 or newer with its venv module found; install one" \
        "(Debian, Ubuntu: apt install python3.11-venv), or set PYTHON to its path"
}

# install_graphsys EXTRAS: make the environment if needed and install the package with
# the extras ("" or "dev"). Environments made for another place or Python are made anew.
install_graphsys() {
    local extras=$1 stamp="$venv/graphsys-installed" key python began=$SECONDS
    key="$root $(cat "$root/pyproject.toml" "$root/constraints.txt" | cksum)"
    if [ -f "$stamp" ] && "$venv/bin/python" -c '' 2>/dev/null; then
        # whatever else is installed, "dev" brings what "" needs
        if grep -qxF "$key dev" "$stamp" || grep -qxF "$key $extras" "$stamp"; then
            return
        fi
        grep -qF "$root " "$stamp" || rm -rf "$venv"
    elif [ -e "$venv" ] && ! "$venv/bin/python" -c '' 2>/dev/null; then
        rm -rf "$venv"
    fi
    if [ ! -e "$venv" ]; then
        python=$(find_python)
        "$python" -m venv "$venv"
    fi
    echo "installing into ${venv#"$PWD"/} ..." >&2
    # bytecode is made of what is imported, when it is: a third of a minute less
    local pip=("$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-compile)
    # torch by itself first: it is by far the largest, and pinned
    "${pip[@]}" -c "$root/constraints.txt" torch
    "${pip[@]}" -c "$root/constraints.txt" -e "$root${extras:+[$extras]}"
    printf '%s %s\n' "$key" "$extras" >>"$stamp"
    echo "installed in $((SECONDS - began)) s" >&2
}
