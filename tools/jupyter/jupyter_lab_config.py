"""How `make lab` starts JupyterLab: on the start page, and quietly.

labconfig/ keeps it from asking for news, custom/ colours its listings.
"""

import os
from pathlib import Path

import zmq
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

HERE = Path(__file__).resolve().parent

c = get_config()  # noqa: F821  Jupyter provides it

c.ServerApp.root_dir = str(HERE.parents[1])
c.LabApp.default_url = "/lab/tree/notebooks/00_start.ipynb"
c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0  # most containers have no other user
c.ServerApp.log_level = c.LabApp.log_level = "ERROR"  # the address to open is printed at any level
c.LabApp.custom_css = True
c.ServerApp.tornado_settings = {"static_custom_path": [str(HERE / "custom")]}
if zmq.has("curve"):
    c.KernelManager.transport_encryption = "auto"  # a kernel is reached over a local port: keep others from listening


class Notebooks(AsyncLargeFileManager):
    """Notebooks come with the metadata that JupyterLab would write into them for the Python at hand.

    Otherwise it marks every notebook as changed as soon as it is open, and asks whether to save it. The chapters are
    trusted, as the package is: else words would stand for their drawings until the cells have run.
    """

    async def get(self, path, content=True, *args, **options):
        """A file; of a notebook, kernelspec and language_info are the kernel's own."""
        model = await super().get(path, content, *args, **options)
        if content and model["type"] == "notebook":
            metadata = model["content"]["metadata"]
            if metadata.get("kernelspec", {}).get("name") == "python3":
                metadata.update(self._of_the_kernel())
            if path.strip("/").startswith("notebooks/"):
                self.notary.mark_cells(model["content"], trusted=True)
        return model

    def _of_the_kernel(self):
        from ipykernel.ipkernel import IPythonKernel

        spec = self.parent.kernel_spec_manager.get_kernel_spec("python3")
        kernelspec = {"display_name": spec.display_name, "language": spec.language, "name": "python3"}
        return {"kernelspec": kernelspec, "language_info": IPythonKernel.language_info}


c.ServerApp.contents_manager_class = Notebooks
