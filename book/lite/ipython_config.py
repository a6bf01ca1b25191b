"""Settings of Python in the browser."""

c = get_config()  # noqa: F821

c.InteractiveShellApp.extensions = ["mathllm_lite"]  # what cells print
c.InteractiveShellApp.exec_lines = [
    # The clock that counts a process's own time stands still here; a page has the worker to itself anyway.
    "import time; time.process_time = time.perf_counter",
    # Without this, new files cannot be read, not even by their owner.
    "import os; os.umask(0o022)",
]
