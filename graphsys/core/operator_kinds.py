"""What kind of work each of torch's operators is, by its name."""

_KINDS = {
    "gemm": "mm addmm bmm baddbmm linear matmul dot mv addmv",
    "gather": "index_select index gather embedding take",
    "scatter": "scatter scatter_add index_add index_put index_copy "
    "embedding_dense_backward scatter_reduce",
    "reduce": "sum mean amax amin max min prod all any argmax norm var logsumexp softmax "
    "_softmax log_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data "
    "nll_loss nll_loss_forward nll_loss_backward linalg_vector_norm",
    "sort": "sort topk argsort unique _unique2 searchsorted bucketize",
    "copy": "copy_ clone _to_copy cat stack contiguous fill_ zero_ zeros ones full "
    "empty_like zeros_like ones_like _local_scalar_dense item",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_FREE = frozenset(
    (
        "view",
        "_unsafe_view",
        "t",
        "transpose",
        "permute",
        "detach",
        "expand",
        "slice",
        "select",
        "unsqueeze",
        "squeeze",
        "alias",
        "as_strided",
        "reshape",
        "unbind",
        "split",
        "chunk",
        "lift_fresh",
        "empty",
    )
)
"""They move no bytes."""


def kind_of(name: str) -> str | None:
    """Return the kind of an operator by its name; None for one that moves nothing.

    Examples:
        >>> kind_of("addmm"), kind_of("relu"), kind_of("index_add_"), kind_of("view")
        ('gemm', 'elementwise', 'scatter', None)
    """
    plain = name.removesuffix("_")
    if name in _FREE or plain in _FREE:
        return None
    return _KIND_OF.get(name) or _KIND_OF.get(plain, "elementwise")
