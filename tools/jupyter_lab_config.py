"""How `make lab` starts JupyterLab: quietly, and as root where the reader is root (as in most containers)."""

import os

c = get_config()  # noqa: F821 - Jupyter provides it

c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0
c.ServerApp.log_level = "WARNING"  # the address to open is printed at any level
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.handlers.announcements.NeverCheckForUpdate"
