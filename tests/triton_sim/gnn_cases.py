"""What message passing is computed by Triton kernels and by the CPU's: see run_gnn."""

FUNCTIONS = (
    "sum",
    "mean",
    "max",
    "weighted",
    "heads",
    "dot",
    "add",
    "softmax",
    "attention",
    "sum and own",
    "mean and own",
)
GRAPHS = ("random", "hub", "empty", "repeated")
CASES = (
    *(f"kernel:{name}:{graph}:float32" for name in FUNCTIONS for graph in GRAPHS),
    *(f"kernel:{name}:random:bfloat16" for name in FUNCTIONS),
    *(f"kernel:{name}:hub:float64" for name in FUNCTIONS),
    "kernel:sum:wide:float32",
    "kernel:max:wide:bfloat16",
    "kernel:sum:none:float32",
    "kernel:max:none:float32",
    "rows:with_self",
    "rows:join",
    "rows:transposed",
    "rows:weigh",
)
TRAININGS = (
    "training:sage",
    "training:sage,prefetch",
    "training:sage,max,bfloat16",
    "training:gcn,whole,watched",
    "training:gat",
    "training:gatv2,residual",
    "training:gin,layer",
    "training:pinsage,links,content",
    "training:rgcn,typed",
    "training:hgt,typed",
    "training:han,typed,whole",
    "training:sage,typed,disk",
    "training:lightgcn,links,bare",
    "training:sage,mlp,links,watched",
    "training:sage,temporal",
    "training:sage,cached,prefetch",
    "training:gcn,typed,cached",
    "resume:sage",
)
CHECKS = ("check:4",)
