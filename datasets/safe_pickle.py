"""Old pickles of arrays, read without letting them build anything else.

A pickle is a program: it can name any function and have it called. This reader lets it
name the constructors of numpy arrays, of SciPy's CSR matrices and ``defaultdict``, and
refuses the rest before anything is called. What it names is not even those: stand-ins
take the state, and arrays are made of it here, so that no state reaches C code unchecked.
"""

import io
import pickle
import pickletools
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InputError
from graphsys.datasets.files import InputFile

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_KINDS: Final = ("b1", "i1", "u1", "i2", "i4", "i8", "f4", "f8")


class _Dtype:
    """Takes the place of ``numpy.dtype``: its code and its byte order."""

    def __init__(self, code: str, *_: object) -> None:
        if code not in _KINDS:
            raise pickle.UnpicklingError(f"an array has dtype {code!r}, expected numbers")
        self.code = code
        self.order = "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = ">" if state[1] == ">" else "<"


class _Array:
    """Takes the place of ``numpy.ndarray``: shape, dtype, order and bytes."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.dtype, self.is_fortran, self.content = state

    def make(self) -> npt.NDArray[Any]:
        """Return the array, checked by numpy against its bytes."""
        content = self.content
        data = content.encode("latin-1") if isinstance(content, str) else content
        flat = np.frombuffer(data, dtype=np.dtype(self.dtype.order + self.dtype.code))
        shaped = flat.reshape(self.shape, order="F" if self.is_fortran else "C")
        return shaped.astype(shaped.dtype.newbyteorder("="))


class _Csr:
    """Takes the place of ``scipy.sparse.csr_matrix``: its arrays."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def make(self) -> "csr_array":
        """Return the matrix, fully checked by SciPy."""
        from scipy.sparse import csr_array

        parts = tuple(self.state[name].make() for name in ("data", "indices", "indptr"))
        matrix = csr_array(parts, shape=self.state["_shape"])
        matrix.check_format(full_check=True)
        # SciPy looks at the row offsets of a matrix with entries only
        offsets = matrix.indptr
        if (np.diff(offsets) < 0).any() or offsets[-1] != len(matrix.indices):
            raise pickle.UnpicklingError(
                "the row offsets of a matrix do not fit its entries"
            )
        return matrix


def _reconstruct(kind: object, *_: object) -> _Array:
    """Take the place of the function that numpy's pickles begin an array with."""
    if kind is not _Array:
        raise pickle.UnpicklingError("an array of another class is begun")
    return _Array()


_ALLOWED: Final[dict[tuple[str, str], object]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


_NEWEST: Final = 3
_REFUSED: Final = ("PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "INST", "OBJ")


def _check_opcodes(content: bytes) -> None:
    """Refuse what arrays do not need, and places in the memo beyond all that is in it.

    Python's own reader makes room for the greatest place that is named, and crashes on
    some wrong sequences of newer opcodes.
    """
    places = 0
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.proto > _NEWEST or opcode.name in _REFUSED:
            raise pickle.UnpicklingError(
                f"it has an opcode {opcode.name}, expected protocol 0 to {_NEWEST}"
            )
        if "PUT" in opcode.name:
            places += 1
            if not 0 <= int(argument or 0) <= 2 * places + 256:
                raise pickle.UnpicklingError(
                    f"it names place {argument} of a memo of {places}"
                )


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a stand-in, or refuse."""
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}, expected only numpy arrays, CSR matrices and "
                "dicts"
            ) from None


def load_pickle(file: InputFile) -> Any:
    """Return the array, the CSR matrix or the dict that a pickle holds.

    Raises:
        InputError: the pickle names anything else, or is damaged.
    """
    content = file.read_all()
    try:
        _check_opcodes(content)
        found = _Unpickler(io.BytesIO(content), encoding="latin-1").load()
        return found.make() if isinstance(found, (_Array, _Csr)) else found
    except Exception as err:  # a damaged pickle may raise anything
        what = " ".join(str(err).split()) or type(err).__name__
        raise InputError(f"{file.name}: refused pickle: {what}") from err
