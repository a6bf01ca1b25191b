"""How `make lab` starts JupyterLab: on the start page, and quietly; labconfig/ keeps it from asking for news."""

import os
from pathlib import Path

import zmq

c = get_config()  # noqa: F821  Jupyter provides it

c.ServerApp.root_dir = str(Path(__file__).resolve().parents[2])
c.LabApp.default_url = "/lab/tree/notebooks/00_start.ipynb"
c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0  # most containers have no other user
c.ServerApp.log_level = c.LabApp.log_level = "ERROR"  # the address to open is printed at any level
if zmq.has("curve"):
    c.KernelManager.transport_encryption = "auto"  # a kernel is reached over a local port: keep others from listening
