"""A real browser, where one is installed, that says how a page looks to it."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

PROBE = """<script>
addEventListener("load", () => setTimeout(() => parent.postMessage({
    width: innerWidth,
    scroll: document.documentElement.scrollWidth,
    hidden: [...document.querySelectorAll(".wide")].map(t => t.scrollWidth - t.clientWidth),
    letters: [...document.images].map(i => i.clientWidth / i.getAttribute("width")),
    broken: [...document.images].filter(i => !i.naturalWidth).length,
}, "*"), 100));
</script>"""

FRAMES = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><pre id="out"></pre><script>
const out = [];
addEventListener("message", e => {
    out.push(e.data);
    document.getElementById("out").textContent = JSON.stringify(out);
});
</script>"""


@dataclass(frozen=True)
class Seen:
    """A page at several widths: what the page says of itself at each, narrowest first, and what the console says."""

    frames: list[dict]
    console: list[str]


def look(path, widths, directory):
    """Open a page in frames of several widths."""
    (directory / "probed.html").write_text(path.read_text(encoding="utf-8").replace("</body>", f"{PROBE}</body>"))
    frames = "".join(f'<iframe src="probed.html" width="{w}" height="800"></iframe>' for w in widths)
    (directory / "frames.html").write_text(FRAMES + frames)
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
        "--hide-scrollbars", "--virtual-time-budget=10000", "--window-size=1400,1000",
        f"--user-data-dir={directory / 'profile'}", "--dump-dom", (directory / "frames.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    frames = json.loads(html.unescape(found.group(1)) or "[]")
    return Seen(sorted(frames, key=lambda frame: frame["width"]), console)
