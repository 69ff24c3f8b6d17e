"""Property tests draw the same examples every time, so that a test fails for a change and not by chance."""

from hypothesis import settings

settings.register_profile("same every time", derandomize=True)
settings.load_profile("same every time")
