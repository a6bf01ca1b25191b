"""Kernels that are reached through sockets in a folder of their own.

Jupyter reaches a kernel over five ports of this machine: it looks for free ones, and a moment later the kernel takes
them. Where several processes start kernels, another one may have taken a port by then, and the kernel does not start.
"""

import shutil
import tempfile
import weakref
from pathlib import Path

import jupyter_client

__all__ = ["AsyncKernelManager", "KernelManager"]


class _InAFolder:
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.folder = Path(tempfile.mkdtemp(prefix="mathllm-"))
        self._remove_folder = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.transport = "ipc"
        self.ip = f"{self.folder}/kernel"
        self.connection_file = f"{self.folder}/connection.json"

    async def _async_cleanup_resources(self, restart=False):
        await super()._async_cleanup_resources(restart)
        if not restart:
            self._remove_folder()


class KernelManager(_InAFolder, jupyter_client.KernelManager):
    """Jupyter's KernelManager; only the way to the kernel is another."""


class AsyncKernelManager(_InAFolder, jupyter_client.AsyncKernelManager):
    """Jupyter's AsyncKernelManager; only the way to the kernel is another."""

    cleanup_resources = _InAFolder._async_cleanup_resources
