"""The first program in the sandbox: sets limits, takes in the submission's files and becomes the kernel.

    python -m mathllm_exercises '{"AS": bytes, "NPROC": 100, ...}' connection.json

A limit set here, soft and hard, cannot be raised by anything that comes after.
"""

import json
import os
import resource
import shutil
import sys
from pathlib import Path


def main(limits, connection_file, *options):
    """Run the kernel that listens at the connection file's sockets."""
    for name, limit in json.loads(limits).items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    Path("/proc/self/oom_score_adj").write_text("1000")  # should memory run out, this goes first
    os.environ.pop("JPY_PARENT_PID", None)  # a process outside, which the kernel would miss
    shutil.copytree(Path(connection_file).parent / "home", Path.home(), symlinks=True, dirs_exist_ok=True)
    os.chdir(Path.home() / "work")

    sys.modules["debugpy"] = None  # a debugger, which nobody asks for: it would take as long as all other imports
    from ipykernel.kernelapp import IPKernelApp

    sys.path.insert(0, "")  # as everywhere: a module that was handed in can be imported
    IPKernelApp.launch_instance(["-f", connection_file, *options, "--HistoryManager.enabled=False"])


if __name__ == "__main__":
    main(*sys.argv[1:])
