#!/bin/sh
# Make .venv from requirements.lock, repair it when it is broken, and say nothing when it is ready. `make setup` runs this.
#
# .venv/.ready is written last, so a set-up that was interrupted is never mistaken for a finished one. It holds the folder
# the environment was made in (virtual environments cannot be moved) and the checksums of the files it was made from.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd -P)
stamp=.venv/.ready
wanted="$here
$(cksum requirements.lock pyproject.toml)"

say() { printf '%s\n' "$*"; }
fail() { printf '%s\n' "$@" >&2; exit 1; }

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1 PYTHONUTF8=1
unset PIP_USER PIP_TARGET PIP_PREFIX PYTHONHOME PYTHONPATH VIRTUAL_ENV || true
# The environment is built by a Python from outside it, even when it is the active one.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vxF -e "$here/.venv/bin" -e "$(pwd)/.venv/bin" | paste -sd : -)

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        recent "$PYTHON" || fail "$PYTHON is missing or older than Python 3.11, which this book needs."
        printf '%s' "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if recent "$candidate"; then printf '%s' "$candidate"; return; fi
    done
    fail "This book needs Python 3.11 or newer, and there is none on the PATH$(
        python3 --version 2>/dev/null | sed 's/^/ (python3 is /; s/$/)/')." \
        "Install one, or name it: make lab PYTHON=/path/to/python3.12"
}

install() { .venv/bin/uv pip install --quiet --python .venv/bin/python "$@"; }

usable() {  # the right folder, a running Python, a running installer, an importable package
    [ "$(head -n 1 $stamp 2>/dev/null)" = "$here" ] && recent .venv/bin/python &&
        .venv/bin/python -c 'import importlib.util as u, numpy; u.find_spec("mathllm").origin' >/dev/null 2>&1 && .venv/bin/uv --version >/dev/null 2>&1
}

complete() {  # all packages of the lock are there; asks the disk only and takes a moment
    [ "$(cat $stamp)" = "$wanted" ] && install --offline --requirements requirements.lock >/dev/null 2>&1
}

if usable; then
    if complete; then exit 0; fi
    say "Bringing .venv up to date ..."
    rm -f $stamp
else
    python=$(find_python)
    say "Creating .venv with $("$python" --version) ..."
    rm -rf .venv
    if ! log=$("$python" -m venv .venv 2>&1); then
        rm -rf .venv
        fail "$log" "" "No virtual environment could be made with $python." \
            "On Debian or Ubuntu its parts come separately: apt-get install python3-venv"
    fi
    .venv/bin/python -m pip install --quiet --quiet "$(grep '^uv==' requirements.lock)" ||
        fail "The installer uv could not be fetched: is the package registry within reach?"
    say "Installing the packages of requirements.lock ..."
fi

# uv does not read pip's settings: a mirror and certificates that were chosen there count here, too.
chosen_for_pip() { .venv/bin/python -m pip config list 2>/dev/null | sed -n "s/^global\\.$1='\\(.*\\)'\$/\\1/p"; }
mirror=${PIP_INDEX_URL:-$(chosen_for_pip index-url)}
certificates=${PIP_CERT:-$(chosen_for_pip cert)}
if [ -z "${UV_DEFAULT_INDEX:-}" ] && [ -n "$mirror" ]; then export UV_DEFAULT_INDEX="$mirror"; fi
if [ -z "${SSL_CERT_FILE:-}" ] && [ -n "$certificates" ]; then export SSL_CERT_FILE="$certificates"; fi
# Compiled once here and not at each start, also where Python must not write (in containers, in the sandbox of grading).
install --compile-bytecode --requirements requirements.lock || fail "Not all packages could be installed; run the same command to try again."
install --no-deps --no-build-isolation --editable .
.venv/bin/python -m compileall -q mathllm exercises
printf '%s\n' "$wanted" > $stamp
