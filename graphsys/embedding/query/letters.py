"""Letters of five by seven dots, for labels in a picture."""

from typing import Final

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]

# ASCII 32 to 126, five columns each, the lowest bit on top: the usual font of LCD modules
_LETTERS: Final = tuple(
    """
    0000000000 00005F0000 0007000700 147F147F14 242A7F2A12 2313086462 3649552250 0005030000
    001C224100 0041221C00 2A1C7F1C2A 08083E0808 0050300000 0808080808 0060600000 2010080402
    3E5149453E 00427F4000 4261514946 2141454B31 1814127F10 2745454539 3C4A494930 0171090503
    3649494936 064949291E 0036360000 0056360000 0814224100 1414141414 0041221408 0201510906
    324979413E 7E1111117E 7F49494936 3E41414122 7F4141221C 7F49494941 7F09090901 3E4149497A
    7F0808087F 00417F4100 2040413F01 7F08142241 7F40404040 7F020C027F 7F0408107F 3E4141413E
    7F09090906 3E4151215E 7F09192946 4649494931 01017F0101 3F4040403F 1F2040201F 3F4038403F
    6314081463 0708700807 6151494543 007F414100 0204081020 0041417F00 0402010204 4040404040
    0001020400 2054545478 7F48444438 3844444420 384444487F 3854545418 087E090102 0C5252523E
    7F08040478 00447D4000 2040443D00 7F10284400 00417F4000 7C04180478 7C08040478 3844444438
    7C14141408 081414187C 7C08040408 4854545420 043F444020 3C4040207C 1C2040201C 3C4030403C
    4428102844 0C5050503C 4464544C44 0008364100 00007F0000 0041360800 1008081008
    """.split()  # noqa: SIM905
)
_UNKNOWN = "?"


def draw_text(image: Image, x: int, y: int, text: str, scale: int, color: Image) -> None:
    """Write a line into an image; what is beyond its edge is left out.

    Args:
        image: float32 ``[height, width, 3]``, changed.
        x: Left edge of the first letter.
        y: Top of the letters.
        text: The line; what is not ASCII becomes a question mark.
        scale: Pixels per dot.
        color: float32 ``[3]``.
    """
    dots = np.kron(text_dots(text), np.ones((scale, scale), dtype=bool))
    part = image[y : y + dots.shape[0], x : x + dots.shape[1]]
    part[dots[: part.shape[0], : part.shape[1]]] = color


def text_dots(text: str) -> npt.NDArray[np.bool_]:
    """Return a line as dots, bool ``[7, 6 n]``."""
    columns: list[int] = []
    for letter in text:
        known = letter if 32 <= ord(letter) <= 126 else _UNKNOWN
        columns += [*bytes.fromhex(_LETTERS[ord(known) - 32]), 0]
    bits = np.array(columns, dtype=np.uint8)
    return (bits >> np.arange(7, dtype=np.uint8)[:, None] & 1).astype(bool)
