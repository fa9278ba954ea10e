"""Figures of `slacktide plot` and of the notebooks: what is drawn, and how. matplotlib is imported nowhere else."""
