"""Pictures drawn by hand, put into the pages so that they take the page's colors."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "pictures"
MARK = re.compile(r"^\{\{ picture (\w+) \}\}$", re.MULTILINE)


def inlined(text: str) -> str:
    """Return a page's text with its pictures where ``{{ picture NAME }}`` stands."""

    def picture(match: re.Match[str]) -> str:
        svg = (FOLDER / f"{match[1]}.svg").read_text(encoding="utf-8")
        flat = " ".join(line.strip() for line in svg.splitlines())
        return f'<div class="picture">{flat}</div>'

    return MARK.sub(picture, text)
