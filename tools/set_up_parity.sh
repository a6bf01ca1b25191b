#!/bin/sh
# Make .venv-parity, where the peers of tests/parity live, and say nothing when it is ready. `make parity` and
# `make bench` run this.
#
# Like .venv it is stamped last, with its folder and the checksums of what it was made from. The Python on the PATH makes
# it (`make` puts that of .venv there). pip installs it: unlike uv, it also takes files from folders named in its
# settings, and PyTorch is too large to be fetched where a file lies ready.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-parity
stamp=$venv/.ready
wanted="$(pwd -P)
$(cksum requirements.lock tests/parity/requirements.txt)"

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1
unset PIP_USER PIP_TARGET PIP_PREFIX PYTHONHOME PYTHONPATH || true

if [ "$(cat $stamp 2>/dev/null)" = "$wanted" ] &&
    $venv/bin/python -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))' \
        numpy pytest hypothesis torch transformers tokenizers 2>/dev/null; then
    exit 0
fi

printf '%s\n' "Creating .venv-parity with PyTorch and transformers (up to a gigabyte, some minutes) ..."
rm -rf $venv
python -m venv $venv
if ! log=$($venv/bin/python -m pip install --quiet --constraint requirements.lock \
    --requirement tests/parity/requirements.txt 2>&1); then
    rm -rf $venv
    printf '%s\n' "$log" "" "The peers that \`make parity\` compares with could not be installed:" \
        "is the package registry within reach, and is there a PyTorch for this Python and this machine?" \
        "Everything else, \`make test\` too, works without them." >&2
    exit 1
fi
printf '%s\n' "$wanted" > $stamp
