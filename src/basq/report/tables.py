"""Numbers and tables for people: as many digits as the error allows."""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from html import escape
from typing import TYPE_CHECKING

from basq.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

    from basq.results.result import Result

QUANTILES = (0.025, 0.5, 0.975)
COLUMNS = ("mean", "sd", "2.5%", "50%", "97.5%")
MAX_PLACES, MAX_PLAIN = 6, 1e7
"""Decimal places, and size, from which numbers are written with exponents."""
UNSURE = "The posterior below may be far off."
"""Stands above a table that has not passed the tests."""
SIGNS = {
    "lambda": "λ",
    "Lambda": "Λ",
    "times": "×",
    "cdot": "·",
    "pm": "±",
    "infty": "∞",
    "odot": "⊙",
    "circ": "°",
    "ell": "ℓ",
    "hbar": "ℏ",
}
"""TeX commands of names, and what they look like; Unicode knows the other Greek letters by name."""
BLUE, ORANGE = "#0072B2", "#D55E00"


def shown(values: Sequence[float], error: float) -> list[str]:
    """Write numbers of one row, down to the second significant digit of an error."""
    return [text.removeprefix("-") if float(text) == 0.0 else text for text in _rounded(values, error)]


def _rounded(values: Sequence[float], error: float) -> list[str]:
    known = [v for v in values if math.isfinite(v)]
    if not (known and math.isfinite(error) and error > 0.0):
        return [f"{v:.5g}" for v in values]
    places = 1 - _exponent(error, 1)
    if places <= MAX_PLACES and max(map(abs, known)) < MAX_PLAIN:
        return [f"{v:.{max(places, 0)}f}" for v in values]
    return [f"{v:.{_digits(v, places)}e}" if math.isfinite(v) else f"{v:g}" for v in values]


def _exponent(value: float, digits: int) -> int:
    """Power of ten of a number that is rounded to this many digits after the first: 0.0996 is 1.0e-1."""
    return int(f"{value:.{digits}e}".partition("e")[2])


def _digits(value: float, places: int) -> int:
    return min(max(_exponent(value, 1) + places, 0), 16) if value else 0


def with_error(value: float, error: float) -> str:
    """Write a number and its error, as in 1.361 ± 0.025."""
    return " ± ".join(shown([value, error], error))


def probable(probability: float, std: float | None = None) -> str:
    """A probability as text, with its error; of one that three digits cannot tell from 0 or 1, on which side it is."""
    if probability < 0.0005:
        return "< 0.001"
    if probability >= 0.9995:
        return "> 0.999"
    return f"{probability:.3f}" if std is None else f"{probability:.3f} ± {std:.3f}"


def headline(result: "Result") -> str:
    """What is known of log Z: its value, or only what it is not below, which nobody should quote as a value."""
    if result.converged or result.sound or not math.isfinite(result.log_evidence):
        return f"log Z = {with_error(result.log_evidence, result.log_evidence_std)}"
    low, (now,) = result.log_evidence_interval[0], shown([result.log_evidence], result.log_evidence_std)
    (least,) = shown([low], result.log_evidence_std)
    return f"log Z not known yet: above {least} (95 %), {now} so far"


def cheap_line(result: "Result") -> list[str]:
    """Which parameters were integrated over at every call, if any: a line."""
    if not result.cheap:
        return []
    was = "was" if len(result.cheap) == 1 else "were"
    rest = f"the calls were spent on {listed(result.expensive)}"
    return [f"{listed(result.cheap)} {was} integrated over at every call; {rest}."]


def listed(names: Sequence[str]) -> str:
    """Names as text: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def aligned(table: Sequence[Sequence[str]]) -> str:
    """Rows of texts as columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        f"{name:<{widths[0]}}  " + "  ".join(f"{t:>{w}}" for t, w in zip(texts, widths[1:], strict=True))
        for name, *texts in table
    )


@dataclass(frozen=True)
class Row:
    """One parameter's posterior in numbers: the median, and low and high, which hold 95 % between them."""

    parameter: str
    mean: float
    sd: float
    low: float
    median: float
    high: float

    def texts(self) -> list[str]:
        """The numbers, written for people."""
        _, *numbers = astuple(self)
        # a skewed posterior needs more digits at its steep end
        widths = [self.sd, (self.median - self.low) / 2.0, (self.high - self.median) / 2.0]
        return shown(numbers, min((w for w in widths if w > 0.0), default=0.0))


@dataclass(frozen=True, repr=False)
class Summary:
    """Mean, standard deviation and quantiles of every parameter: to print, or as numbers.

    Attributes
    ----------
    names : tuple of str
    rows : tuple of Row
        One for each; none if there is no posterior.

    Examples
    --------
    >>> table = Summary(("rate",), (Row("rate", 1.36132, 0.02513, 1.31, 1.361, 1.412),))
    >>> print(table)
    parameter   mean     sd   2.5%    50%  97.5%
    rate       1.361  0.025  1.310  1.361  1.412
    >>> table["rate"].mean
    1.36132
    """

    names: tuple[str, ...]
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.parameter == name:
                return row
        raise InputError(f"No parameter {name!r} in this table; it has {', '.join(r.parameter for r in self.rows)}.")

    def to_pandas(self) -> "DataFrame":
        """A data frame, one row per parameter."""
        from basq.extras import package

        frame: DataFrame = package("pandas").DataFrame(
            [astuple(row)[1:] for row in self.rows],
            columns=list(COLUMNS),
            index=[row.parameter for row in self.rows],
            dtype=float,
        )
        return frame

    def __repr__(self) -> str:
        if not self.rows:
            return f"no posterior over {', '.join(self.names)}"
        table = [["parameter", *COLUMNS], *([row.parameter, *row.texts()] for row in self.rows)]
        return aligned(table)

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{escape(str(self))}</p>"
        head = _html_row("th", ["parameter", *COLUMNS])
        body = "".join(_html_row("td", [html_name(row.parameter), *row.texts()]) for row in self.rows)
        style = "color:inherit;font-size:inherit;font-variant-numeric:tabular-nums;border-collapse:collapse"
        return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def html_name(name: str) -> str:
    """A parameter's name in HTML: the simple TeX of plots as letters, subscripts and superscripts."""
    text = escape(name)
    return re.sub(r"\$([^$]+)\$", lambda found: _html_maths(found[1]), text)


def _html_maths(tex: str) -> str:
    tex = re.sub(r"\\(?:math\w+|text\w*|rm|it|bf|left|right|operatorname)(?![a-zA-Z])", "", tex)
    tex = re.sub(r"\\([a-zA-Z]+) ?", lambda found: _letter(found[1]), tex)
    tex = re.sub(r"\\[,;:! ]", "\u2009", tex)
    tex = re.sub(r"\{\{([^{}]*)\}\}", r"{\1}", tex)
    for mark, tag in (("_", "sub"), (r"\^", "sup")):
        tex = re.sub(mark + r"(?:\{([^{}]*)\}|(&[#\w]+;|[^\s{}<]))", rf"<{tag}>\1\2</{tag}>", tex)
    return re.sub(r"[{}\\]", "", tex)


def _letter(command: str) -> str:
    """The character of a TeX command, or its name."""
    kind = "CAPITAL" if command[0].isupper() else "SMALL"
    letter = command.upper().removeprefix("VAR")
    try:
        return unicodedata.lookup(f"GREEK {kind} LETTER {letter}")
    except KeyError:
        return SIGNS.get(command, command)


def _html_row(tag: str, cells: Sequence[str]) -> str:
    """A table's row, its first cell to the left; colours are the notebook's own, so that they suit light and dark."""
    sides = ["left", *["right"] * (len(cells) - 1)]
    parts = [
        f'<{tag} style="text-align:{side};padding:0.1em 0.8em">{cell}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    ]
    return f"<tr>{''.join(parts)}</tr>"


def card(headline: str, aside: str, good: bool, lines: Sequence[str]) -> str:
    """A few lines of HTML with a coloured edge: blue if good, orange if not."""
    text = "".join(f"<div>{escape(line)}</div>" for line in lines)
    return (
        f'<div style="border-left:4px solid {BLUE if good else ORANGE};padding-left:0.8em;margin:0.4em 0">'
        f"<div><strong>{escape(headline)}</strong>&ensp;({escape(aside)})</div>{text}</div>"
    )
