"""FFT as SHOC's, Black-Scholes and n-body as CUDA's samples, k-means as Rodinia's."""

import math

import numpy as np

from bench.controls.device import THREADS, Array, Device, Kernel, load, step

POINTS = 512
PASSES = 9


def fft_512(phase, block, thread, shared, own, log, real, imaginary):
    """Transform 512 points by radix 2 (Stockham): a butterfly a thread, all in a CTA."""
    first = block * POINTS
    here, there = (phase + 1) % 2 * 2 * POINTS, phase % 2 * 2 * POINTS
    if phase == 0:
        for i in range(thread, POINTS, THREADS):
            shared[there + i] = load(log, 0, real, first + i)
            shared[there + POINTS + i] = load(log, 1, imaginary, first + i)
        return
    if phase == PASSES + 1:
        for i in range(thread, POINTS, THREADS):
            real[first + i] = shared[here + i]
            imaginary[first + i] = shared[here + POINTS + i]
        return
    span = 1 << (phase - 1)
    k = thread % span
    angle = np.float32(-math.pi) * np.float32(k) / np.float32(span)
    c, s = math.cos(angle), math.sin(angle)
    a, b = shared[here + thread], shared[here + POINTS + thread]
    far, away = shared[here + thread + THREADS], shared[here + POINTS + thread + THREADS]
    x, y = far * c - away * s, far * s + away * c
    out = there + (thread - k) * 2 + k
    shared[out], shared[out + POINTS] = a + x, b + y
    shared[out + span], shared[out + POINTS + span] = a - x, b - y
    step(log, 1)


def fft(device: Device, rows: Array) -> Array:
    """Return the transforms of rows of 512 complex numbers of single precision."""
    real = device.copy_in(np.ascontiguousarray(rows.real))
    imaginary = device.copy_in(np.ascontiguousarray(rows.imag))
    device.launch(FFT, len(rows), (real, imaginary), phases=PASSES + 2)
    found = device.copy_out(real) + 1j * device.copy_out(imaginary)
    return found.reshape(rows.shape)


def price(phase, block, thread, shared, own, log, spot, strike, years, call, put, r, v):
    """Price a call and a put."""
    i = block * THREADS + thread
    if i >= len(spot):
        return
    s, x = load(log, 0, spot, i), load(log, 1, strike, i)
    t = load(log, 2, years, i)
    root = v * math.sqrt(t)
    d1 = (math.log(s / x) + (r + v * v / 2) * t) / root
    below = math.erfc(-d1 / math.sqrt(2.0)) / 2
    far = math.erfc(-(d1 - root) / math.sqrt(2.0)) / 2
    kept = x * math.exp(-r * t)
    call[i] = s * below - kept * far
    put[i] = kept * (1 - far) - s * (1 - below)
    step(log, 1)


def black_scholes(device: Device, spot: Array, strike: Array, years: Array) -> Array:
    """Return the prices of calls and of puts, at 2 % interest and 30 % volatility."""
    given = tuple(device.copy_in(it) for it in (spot, strike, years))
    call, put = device.zeros(len(spot)), device.zeros(len(spot))
    blocks = -(-len(spot) // THREADS)
    device.launch(PRICE, blocks, (*given, call, put), (0.02, 0.3))
    return np.stack([device.copy_out(call), device.copy_out(put)])


def nearest_center(phase, block, thread, shared, own, log, points, centers, found, n, k, d):
    """Find the center that is nearest to a point; coordinate by coordinate in memory."""
    i = block * THREADS + thread
    if i >= n:
        return
    best, least = 0, np.float32(np.inf)
    for c in range(k):
        far = own[0]
        for j in range(d):
            gap = load(log, 0, points, j * n + i) - centers[c * d + j]
            far += gap * gap
            step(log, 1)
        if far < least:
            best, least = c, far
    found[i] = best


def k_means(device: Device, points: Array, centers: Array, iterations: int) -> Array:
    """Return the clusters of points, centers moved by the host, until nothing changes."""
    (n, d), k = points.shape, len(centers)
    given = device.copy_in(np.ascontiguousarray(points.T))
    found, before = device.zeros(n, np.int32), np.full(n, -1, dtype=np.int32)
    for _ in range(iterations):
        constant = device.copy_in(centers.astype(np.float32))
        device.launch(
            NEAREST, -(-n // THREADS), (given, constant, found), (n, k, d), max_loads=k * d
        )
        now = device.copy_out(found)
        if np.array_equal(now, before):
            break
        before = now
        sizes = np.maximum(np.bincount(now, minlength=k), 1)
        sums = [np.bincount(now, points[:, j], k) for j in range(d)]
        centers = np.stack(sums, axis=1) / sizes[:, None]
    return before


def move_bodies(phase, block, thread, shared, own, log, old, speed, new, n, dt):
    """Pull on a body by all others, 256 of them at a time in shared memory, and move it."""
    i = block * THREADS + thread
    tile = phase // 2
    if phase == 2 * (n // THREADS):
        for j in range(3):
            v = load(log, 1, speed, j * n + i) + own[j] * dt
            speed[j * n + i] = v
            new[j * n + i] = old[j * n + i] + v * dt
        new[3 * n + i] = old[3 * n + i]
    elif phase % 2 == 0:
        for j in range(4):
            shared[j * THREADS + thread] = load(
                log, 0, old, j * n + tile * THREADS + thread
            )
    else:
        x, y, z = old[i], old[n + i], old[2 * n + i]
        for k in range(THREADS):
            dx, dy = shared[k] - x, shared[THREADS + k] - y
            dz = shared[2 * THREADS + k] - z
            near = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            pull = shared[3 * THREADS + k] / (near * math.sqrt(near))
            own[0] += dx * pull
            own[1] += dy * pull
            own[2] += dz * pull
        step(log, THREADS)


def n_body(device: Device, bodies: Array, iterations: int, dt: float) -> Array:
    """Return places and masses of bodies after some steps; ``[4, n]``, n in 256s."""
    n = bodies.shape[1]
    old, new = device.copy_in(bodies), device.zeros(4 * n)
    speed = device.zeros(3 * n)
    phases = 2 * (n // THREADS) + 1
    for _ in range(iterations):
        device.launch(
            MOVE,
            n // THREADS,
            (old, speed, new),
            (n, dt),
            phases=phases,
            max_loads=4 * (n // THREADS) + 3,
        )
        old, new = new, old
    return device.copy_out(old).reshape(4, n)


FFT = Kernel(fft_512, shared=4 * POINTS)
PRICE = Kernel(price)
NEAREST = Kernel(nearest_center)
MOVE = Kernel(move_bodies, shared=4 * THREADS, own=3)
