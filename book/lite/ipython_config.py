"""Settings of Python in the browser."""

c = get_config()  # noqa: F821

# Matplotlib says on a red ground that it looks for fonts. Here it has only its own, and is done in a second.
c.InteractiveShellApp.exec_lines = ["import logging; logging.getLogger('matplotlib.font_manager').setLevel('ERROR')"]
