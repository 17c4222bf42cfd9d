"""Matrices and pictures: tiled GEMM, LU, a 2-D stencil, a separable convolution.

GEMM and the convolution are built as in CUDA's samples, LU and the stencil as in Rodinia.
"""

from bench.controls.device import THREADS, Array, Device, Kernel, load, step

TILE = 16
RADIUS = 8


def gemm_tiles(phase, block, thread, shared, own, log, a, b, c, n):
    """Take a tile of A and of B into shared memory, multiply, and again."""
    x, y = thread % TILE, thread // TILE
    tiles = n // TILE
    row, column = block // tiles * TILE + y, block % tiles * TILE + x
    at = phase // 2 * TILE
    if phase == 2 * tiles:
        c[row * n + column] = own[0]
    elif phase % 2 == 0:
        shared[thread] = load(log, 0, a, row * n + at + x)
        shared[THREADS + thread] = load(log, 1, b, (at + y) * n + column)
    else:
        total = own[0]
        for k in range(TILE):
            total += shared[y * TILE + k] * shared[THREADS + k * TILE + x]
        own[0] = total
        step(log, TILE)


def gemm(device: Device, a: Array, b: Array) -> Array:
    """Return the product of two square matrices of float32."""
    n = len(a)
    left, right = device.copy_in(a), device.copy_in(b)
    out = device.zeros(n * n)
    tiles = n // TILE
    device.launch(
        GEMM,
        tiles * tiles,
        (left, right, out),
        (n,),
        phases=2 * tiles + 1,
        max_loads=2 * tiles,
    )
    return device.copy_out(out).reshape(n, n)


def lu_diagonal(phase, block, thread, shared, own, log, a, n, at):
    """Decompose the tile on the diagonal, a step of elimination every two phases."""
    x, y = thread % TILE, thread // TILE
    place = (at + y) * n + at + x
    k = (phase - 1) // 2
    if phase == 0:
        shared[thread] = load(log, 0, a, place)
    elif phase == 2 * TILE - 1:
        a[place] = shared[thread]
    elif phase % 2 == 1:
        if x == k and y > k:
            shared[thread] /= shared[k * TILE + k]
            step(log, 1)
    elif x > k and y > k:
        shared[thread] -= shared[y * TILE + k] * shared[k * TILE + x]
        step(log, 1)


def lu_perimeter(phase, block, thread, shared, own, log, a, n, at):
    """Solve the tiles right of the diagonal and below it; half of the CTAs each."""
    x, y = thread % TILE, thread // TILE
    left = (n - at) // TILE - 1
    is_row = block < left
    shift = at + (block % left + 1) * TILE
    row, column = (at, shift) if is_row else (shift, at)
    place = (row + y) * n + column + x
    if phase == 0:
        shared[thread] = load(log, 0, a, (at + y) * n + at + x)
        shared[THREADS + thread] = load(log, 0, a, place)
    elif phase == 2:
        a[place] = shared[THREADS + thread]
    elif thread < TILE and is_row:  # a column of U each
        for i in range(1, TILE):
            total = shared[THREADS + i * TILE + thread]
            for k in range(i):
                total -= shared[i * TILE + k] * shared[THREADS + k * TILE + thread]
            shared[THREADS + i * TILE + thread] = total
            step(log, i)
    elif thread < TILE:  # a row of L each
        for i in range(TILE):
            total = shared[THREADS + thread * TILE + i]
            for k in range(i):
                total -= shared[THREADS + thread * TILE + k] * shared[k * TILE + i]
            shared[THREADS + thread * TILE + i] = total / shared[i * TILE + i]
            step(log, i + 1)


def lu_internal(phase, block, thread, shared, own, log, a, n, at):
    """Subtract the product of a tile of L and one of U from every tile that is left."""
    x, y = thread % TILE, thread // TILE
    left = (n - at) // TILE - 1
    row = at + (block // left + 1) * TILE + y
    column = at + (block % left + 1) * TILE + x
    if phase == 0:
        shared[thread] = load(log, 0, a, row * n + at + x)
        shared[THREADS + thread] = load(log, 0, a, (at + y) * n + column)
        return
    total = load(log, 0, a, row * n + column)
    for k in range(TILE):
        total -= shared[y * TILE + k] * shared[THREADS + k * TILE + x]
    a[row * n + column] = total
    step(log, TILE)


def lu(device: Device, a: Array) -> Array:
    """Return L and U of a matrix in one, without pivoting."""
    n = len(a)
    matrix = device.copy_in(a)
    for at in range(0, n, TILE):
        left = (n - at) // TILE - 1
        device.launch(LU_DIAGONAL, 1, (matrix,), (n, at), phases=2 * TILE)
        if left:
            device.launch(LU_PERIMETER, 2 * left, (matrix,), (n, at), phases=3)
            device.launch(LU_INTERNAL, left * left, (matrix,), (n, at), phases=2)
    return device.copy_out(matrix).reshape(n, n)


def heat(phase, block, thread, shared, own, log, old, new, n):
    """Set a cell to the mean of itself and its four neighbors, itself at the border."""
    i = block * THREADS + thread
    if i >= n * n:
        return
    x, y = i % n, i // n
    total = load(log, 0, old, i)
    total += load(log, 0, old, y * n + max(x - 1, 0))
    total += load(log, 0, old, y * n + min(x + 1, n - 1))
    total += load(log, 0, old, max(y - 1, 0) * n + x)
    total += load(log, 0, old, min(y + 1, n - 1) * n + x)
    new[i] = total / 5
    step(log, 5)


def stencil(device: Device, grid: Array, iterations: int) -> Array:
    """Return a square grid after some steps of diffusion."""
    n = len(grid)
    old, new = device.copy_in(grid), device.zeros(n * n)
    for _ in range(iterations):
        device.launch(HEAT, -(-n * n // THREADS), (old, new), (n,))
        old, new = new, old
    return device.copy_out(old).reshape(n, n)


def convolve_rows(phase, block, thread, shared, own, log, picture, out, weights, n):
    """Convolve along rows: a CTA has 256 cells of one and ``RADIUS`` at both ends."""
    per_row = n // THREADS
    row, first = block // per_row, block % per_row * THREADS
    if phase == 0:
        for i in range(thread, THREADS + 2 * RADIUS, THREADS):
            x = first + i - RADIUS
            shared[i] = load(log, 0, picture, row * n + x) if 0 <= x < n else 0.0
        return
    total = own[0]
    for k in range(2 * RADIUS + 1):
        total += shared[thread + k] * weights[k]
    out[row * n + first + thread] = total
    step(log, 2 * RADIUS + 1)


def convolve_columns(phase, block, thread, shared, own, log, picture, out, weights, n):
    """Convolve along columns: a CTA has 16 x 16 cells and ``RADIUS`` rows at both ends."""
    x, y = thread % TILE, thread // TILE
    tiles = n // TILE
    row, column = block // tiles * TILE, block % tiles * TILE + x
    if phase == 0:
        for i in range(y, TILE + 2 * RADIUS, TILE):
            at = row + i - RADIUS
            is_inside = 0 <= at < n
            shared[i * TILE + x] = (
                load(log, 0, picture, at * n + column) if is_inside else 0.0
            )
        return
    total = own[0]
    for k in range(2 * RADIUS + 1):
        total += shared[(y + k) * TILE + x] * weights[k]
    out[(row + y) * n + column] = total
    step(log, 2 * RADIUS + 1)


def convolution(device: Device, picture: Array, weights: Array) -> Array:
    """Return a picture, 0 outside, convolved with the same weights along both axes."""
    n = len(picture)
    given, constant = device.copy_in(picture), device.copy_in(weights)
    half, out = device.zeros(n * n), device.zeros(n * n)
    blocks = n * n // THREADS
    device.launch(ROWS, blocks, (given, half, constant), (n,), phases=2)
    device.launch(COLUMNS, blocks, (half, out, constant), (n,), phases=2)
    return device.copy_out(out).reshape(n, n)


GEMM = Kernel(gemm_tiles, shared=2 * THREADS)
LU_DIAGONAL = Kernel(lu_diagonal, shared=THREADS)
LU_PERIMETER = Kernel(lu_perimeter, shared=2 * THREADS)
LU_INTERNAL = Kernel(lu_internal, shared=2 * THREADS)
HEAT = Kernel(heat)
ROWS = Kernel(convolve_rows, shared=THREADS + 2 * RADIUS)
COLUMNS = Kernel(convolve_columns, shared=TILE * (TILE + 2 * RADIUS))
