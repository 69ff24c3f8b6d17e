"""Python's words in messages, as the command line says them."""

import re

OPTIONS = "max_evals|dlogz|max_time|batch_size|dprob|store|pool|timeout|retries|seed|on_error|method"
WORDS = (
    (r"pass_dict=True \(on the command line, (--pass-dict)\)", r"\1"),
    (r"vectorized=True, on the command line (--vectorized)", r"\1"),
    (r"(pass_dict|vectorized|asynchronous)=True", lambda found: f"--{_dashed(found[1])}"),
    (rf"\b({OPTIONS}) ?= ?(?=\S)", lambda found: f"--{_dashed(found[1])} "),
    (rf"\b({OPTIONS})=", lambda found: f"--{_dashed(found[1])}"),
    (r" \(result\.failures\)", ""),
    (r"evaluations='([^']*)' next to a new store", r"basq.infer(…, evaluations='\1', store=…) in Python"),
)
"""What is said in Python, and how it is said here."""


def translated(text: str) -> str:
    """A message in the words of the command line; the lines that begin with a call of Python stay what they are."""
    for python, ours in WORDS:
        text = re.sub(python, ours, text)
    return text


def _dashed(word: str) -> str:
    return word.replace("_", "-")
