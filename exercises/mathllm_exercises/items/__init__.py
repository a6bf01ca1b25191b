"""The exercises, one module per chapter. Each module has a list ITEMS."""
