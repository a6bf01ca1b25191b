"""What the source documents print, as printed and corrected: imported by the book alone."""
