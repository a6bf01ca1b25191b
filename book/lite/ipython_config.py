"""Settings of Python in the browser."""

c = get_config()  # noqa: F821

c.InteractiveShellApp.extensions = ["mathllm_lite"]  # what cells print
c.InteractiveShellApp.exec_lines = [
    # The clock that counts a process's own time stands still here; a page has the worker to itself anyway.
    "import time; time.process_time = time.perf_counter",
    # Nobody, not even their owner, may read new files at first.
    "import os; os.umask(0o022)",
]
