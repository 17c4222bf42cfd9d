"""TGN's attention is that of its formula, node by node, whoever has no events."""

import numpy as np
import torch

from graphsys.gnn.models.tgn import NeighborEvents, TemporalAttention

DIM, HEADS, FANOUT, FEATURES = 6, 2, 3, 2


def test_attention_is_the_formula_of_each_node() -> None:
    torch.manual_seed(0)
    attention = TemporalAttention(DIM, FEATURES, HEADS, FANOUT, 0.0)
    own, now, rows = torch.randn(4, DIM), torch.randn(DIM), torch.randn(5, DIM)
    node = torch.tensor([0, 0, 0, 1, 3, 3])  # the third has no event
    place = torch.tensor([0, 1, 2, 0, 0, 1])
    neighbor = torch.tensor([4, 0, 4, 1, 2, 3])
    said = torch.randn(len(node), DIM + FEATURES)
    own.requires_grad_()
    with torch.autograd.detect_anomaly(check_nan=True):
        merged, found = attention(
            own, now, rows, NeighborEvents(node, place, neighbor, said)
        )
        (merged.sum() + found.square().sum()).backward()
    assert own.grad is not None
    assert torch.isfinite(own.grad).all()
    with torch.no_grad():
        for k in range(4):
            query = attention.query(torch.cat([own[k], now])).view(HEADS, -1)
            values, scores = [], []
            for e in torch.nonzero(node == k)[:, 0].tolist():
                row = rows[neighbor[e]]
                inputs = torch.cat([row, said[e]])
                key = attention.key(inputs).view(HEADS, -1)
                values.append((attention.value(inputs) + row).view(HEADS, -1))
                score = (query * key).sum(dim=1) / (DIM // HEADS) ** 0.5
                scores.append(score + attention.place[place[e]])
            expected = torch.zeros(DIM)
            if scores:
                shares = torch.softmax(torch.stack(scores), dim=0)
                expected = (shares[..., None] * torch.stack(values)).sum(dim=0).flatten()
            np.testing.assert_allclose(found[k], expected, atol=1e-6)
            row = attention.merge(torch.cat([expected, own[k]])) + own[k]
            np.testing.assert_allclose(merged[k].detach(), row, atol=1e-5)
