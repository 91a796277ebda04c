"""References that do not die: what is uploaded, under which name, and how it gets there whole."""
