"""What is trained by Triton kernels and by the CPU: see run_embedding."""

CASES = (
    "step:identity,dot,softmax", "step:translation,l2,ranking",
    "step:diagonal,cos,logistic", "step:linear,squared_l2,softmax",
    "step:complex_diagonal,dot,logistic", "step:identity,cos,ranking,reciprocal",
    "step:translation,squared_l2,logistic,reciprocal",
    "step:diagonal,l2,softmax,reciprocal", "step:linear,dot,ranking,reciprocal",
    "step:complex_diagonal,dot,softmax,reciprocal", "step:identity,l2,logistic,free",
    "step:identity,cos,softmax,free", "step:diagonal,squared_l2,ranking,free",
    "step:diagonal,dot,softmax,uniform", "step:diagonal,l2,logistic,uniform,reciprocal",
    "step:translation,dot,logistic,uniform,shared",
    "step:complex_diagonal,cos,softmax,reciprocal,shared",
    "step:mixed,dot,softmax,reciprocal,shared",
    "bucket:complex_diagonal,dot,softmax,reciprocal",
    "bucket:translation,squared_l2,ranking,shared", "bucket:linear,cos,logistic",
    "bucket:complex_diagonal,dot,softmax,reciprocal,bfloat16",
    "run:2",
)  # fmt: skip
