"""What the book's notebooks show: figures, interactive figures, and listings of the package's own source.

- `plots`: the style of the figures, `show` with alternative text, and the map of a language model;
- `notebook`: listings of functions, and a curve of the loss that grows during a training run;
- `questions`: the folded answers of questions that a reader answers on the page;
- `scoreboard`: the table of all language models so far, measured on one page;
- `widgets`: interactive figures, which need anywidget.

Nothing is imported here, so that `import mathllm` needs NumPy alone: write `from mathllm.figures import plots`.
"""
