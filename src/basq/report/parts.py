"""What a page is made of: texts, tables and pictures as HTML."""

import base64
import html
import io
import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from basq.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PIXELS = 1700
"""Width of a picture."""


class Html(str):
    """What is HTML already."""

    __slots__ = ()


def text(value: object) -> str:
    """Anything as text that HTML does not interpret."""
    return value if isinstance(value, Html) else html.escape(str(value))


def section(title: str, body: str) -> str:
    """A part of the page with its heading; nothing if it is empty."""
    return f"<section><h2>{text(title)}</h2>{body}</section>" if body else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: AbstractSet[int] = frozenset()) -> str:
    """A table whose first column names its rows; the columns in ``words`` hold text, the others numbers."""

    def cell(i: int, value: str) -> str:
        if i == 0:
            return f'<th scope="row">{text(value)}</th>'
        return f'<td class="text">{text(value)}</td>' if i in words else f"<td>{text(value.replace('-', '−'))}</td>"

    columns = "".join(
        f'<th scope="col"{" class=text" if i in words or i == 0 else ""}>{text(h)}</th>' for i, h in enumerate(head)
    )
    body = "".join(f"<tr>{''.join(cell(i, v) for i, v in enumerate(row))}</tr>" for row in rows)
    return f'<div class="wide" tabindex="0"><table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>'


def picture(draw: Callable[[], "Figure"], alt: str) -> str:
    """A figure inside the page; where there is none, why."""
    try:
        figure = draw()
    except InputError as error:
        return f"<p>{text(error)}</p>"
    buffer = io.BytesIO()
    width, height = figure.get_size_inches()
    dpi = min(200.0, MOST_PIXELS / width)
    figure.savefig(buffer, dpi=dpi, format="png", metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    side = round(width * 100)
    return (
        f'<figure><img alt="{text(alt)}" width="{side}" height="{round(height * 100)}" style="--side: {side}px" '
        f'src="data:image/png;base64,{data}"></figure>'
    )


def signed(text: str) -> str:
    """Text with true minus signs before its numbers."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)
