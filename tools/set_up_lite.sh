#!/bin/sh
# Make .venv-lite, which holds what the edition in the browser is built from, and say nothing when it is ready.
# `make lite` runs this.
#
#     .venv-lite/bin            JupyterLite's builder and the extensions that JupyterLab shows the book with
#     .venv-lite/wheels         packages for the browser
#     .venv-lite/node_modules   Python for the browser
#
# Like .venv it is stamped last, with its folder and the checksums of what it was made from. The Python on the PATH makes
# it (`make` puts that of .venv there).
set -eu
cd "$(dirname "$0")/.."
lite=book/lite
venv=.venv-lite
stamp=$venv/.ready
wanted="$(pwd -P)
$(cksum $lite/requirements.txt $lite/wheels.txt $lite/package-lock.json)"

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1
unset PIP_USER PIP_TARGET PIP_PREFIX PYTHONHOME PYTHONPATH || true

if [ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && [ -f $venv/node_modules/pyodide/pyodide.asm.wasm ] &&
    $venv/bin/python -c 'import jupyterlite_core, jupyterlite_pyodide_kernel, jupyter_server' 2>/dev/null; then
    exit 0
fi

fail() {
    rm -rf $venv
    printf '%s\n' "$@" "" "What \`make lite\` builds from could not be fetched: are the package registries within reach?" \
        "Everything else, \`make site\` too, works without it." >&2
    exit 1
}

command -v npm >/dev/null || fail "npm is not installed (Debian: apt install npm)."
printf '%s\n' "Creating .venv-lite with JupyterLite and Python for the browser (about 100 megabytes, a minute) ..."
rm -rf $venv
python -m venv $venv
pip="$venv/bin/python -m pip --quiet"
log=$($pip install --no-deps --requirement $lite/requirements.txt 2>&1) || fail "$log"
log=$($pip download --no-deps --require-hashes --only-binary :all: --platform any --python-version 3.12 \
    --dest $venv/wheels --requirement $lite/wheels.txt 2>&1) || fail "$log"
cp $lite/package.json $lite/package-lock.json $venv
log=$(cd $venv && npm ci --ignore-scripts --loglevel error 2>&1) || fail "$log"
printf '%s\n' "$wanted" > $stamp
