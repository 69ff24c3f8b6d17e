"""Every experiment of the paper, one module each: what it runs, and how it reads in docs/paper.md."""
