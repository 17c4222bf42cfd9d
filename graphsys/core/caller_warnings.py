"""Notes to whoever called the library: warnings that point at their code, not at ours."""

import sys
import warnings
from pathlib import Path
from typing import Final

_OURS: Final = str(Path(__file__).resolve().parent.parent)
_STANDARD: Final = str(Path(warnings.__file__).parent)


def note(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn the caller of this library; the command line prints it as one line.

    The warning is placed at the innermost code that is neither ours nor the standard
    library's, such as a ``with`` statement of the user.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(
        (_OURS, _STANDARD, "<")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level + 1)
