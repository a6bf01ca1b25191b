"""Real model files, read with NumPy: what the chapters call on when the small examples are done."""
