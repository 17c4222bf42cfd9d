"""BEM: rows of a knowledge graph as prior, corrected by rows of a behavior graph."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from graphsys.core.errors import ConfigError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.model import Model, Relation, Rows, Tensors, key_of


class Bem(Model):
    """Bayes embedding: ``z_i ~ N(f(h_i + d_i), s_z^2)``, corrections ``d_i ~ N(0, s^2)``.

    A node's features are rows that were learned before: ``h_i`` of a knowledge graph, the
    feature ``prior``, and ``z_i`` of a behavior graph, the other features. A network
    reads both and states the posterior of the correction, a mean and a standard deviation
    per number; training draws corrections from it and maximizes the lower bound of the
    likelihood of ``z_i``: its expected log density, less the divergence of the posterior
    from the prior. The rows that come out are ``f(h_i + d_i)``, or with ``corrected =
    "prior"`` the knowledge rows ``h_i + d_i``; after training ``d_i`` is its mean. The task
    measures them and moves nothing: what is learned is the bound. No messages are read.

    This is the paper's pointwise form (BEM-P), without its differences of pairs of rows.

    Args:
        config: ``prior``, ``prior_std`` (s), ``corrected``; ``dim`` of hidden layers.
        relations: Name, node type and neighbors' type of each.
        shapes: Input of every node type.
        decoder: What makes scores of the output.

    Raises:
        ConfigError: Node types without both rows, or with rows of other lengths.

    References:
        Ye, Lin, Liu, Zhang, et al., "Bayes EMbedding (BEM): refining representation by
        integrating knowledge graphs and behavior-specific networks", CIKM 2019; Zhu et al.,
        "AliGraph", VLDB 2019, section 4.2, names it Bayesian GNN.
    """

    def __init__(
        self,
        config: GnnConfig,
        relations: Sequence[Relation],
        shapes: Mapping[str, InputShape],
        decoder: nn.Module | None = None,
    ) -> None:
        self._columns, observed = _columns_of(config, shapes)
        prior = len(next(iter(self._columns.values())))
        is_prior = config.corrected == "prior"
        super().__init__(config, prior if is_prior else observed, decoder)
        self._relations = list(relations)
        self.posterior, self.project = nn.ModuleDict(), nn.ModuleDict()
        self.log_noise = nn.ParameterDict()  # log s_z, by number
        for name in shapes:
            self.posterior[key_of(name)] = _mlp(prior + observed, config.dim, 2 * prior)
            self.project[key_of(name)] = _mlp(prior, config.dim, observed)
            self.log_noise[key_of(name)] = nn.Parameter(torch.zeros(observed))

    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return the output of the seeds by type, and hold the bound of their rows."""
        found, bounds, count = {}, [], 0
        for name, values in x.items():
            own = values[: self._num_seeds(hops[-1], name, len(values))]
            rows, bound = self._correct(name, own)
            found[name] = rows.detach()
            bounds.append(bound)
            count += len(own)
        if self.training:
            self.side_loss = -torch.stack(bounds).sum() / max(count, 1)
        return found

    def embed(self, x: Mapping[str, Any]) -> Tensors:
        """Return the output already: of the node's own features alone."""
        return {name: self._correct(name, values)[0] for name, values in x.items()}

    def convolve(
        self,
        k: int,
        rows: Rows,
        h: Mapping[str, torch.Tensor],
        own: Mapping[str, torch.Tensor] | None = None,
    ) -> Tensors:
        """Return the rows of the destinations as they are."""
        if own is not None:
            return dict(own)
        return {name: x[: self._num_seeds(rows, name, len(x))] for name, x in h.items()}

    def finish(self, h: Mapping[str, torch.Tensor]) -> Tensors:
        """Return the rows as they are."""
        return dict(h)

    def first_weights(self) -> list[nn.Parameter]:
        """Return the parameters of what reads the features."""
        return list(self.posterior.parameters())

    def _correct(self, name: str, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows of nodes, and the sum of their lower bounds, per number of z."""
        s, own = self.config.prior_std, self._columns[name]
        h = x[:, own.start : own.stop]
        z = torch.cat([x[:, : own.start], x[:, own.stop :]], dim=1)
        mean, log_std = self.posterior[key_of(name)](x).chunk(2, dim=1)
        log_std = log_std + math.log(s)  # the prior's, until the data say otherwise
        correction = mean
        if self.training:
            correction = mean + log_std.exp() * torch.randn_like(mean)
        corrected = h + correction
        projected = self.project[key_of(name)](corrected)
        log_noise = self.log_noise[key_of(name)]
        residual = (z - projected) / log_noise.exp()
        density = -0.5 * residual.square() - log_noise - 0.5 * math.log(2 * math.pi)
        ratio = (mean.square() + (2 * log_std).exp()) / s**2
        divergence = 0.5 * (ratio - 1) + math.log(s) - log_std
        bound = (density.sum() - divergence.sum()) / z.shape[1]
        return corrected if self.config.corrected == "prior" else projected, bound

    def _num_seeds(self, rows: Rows, name: str, count: int) -> int:
        for relation, own, _ in self._relations:
            if own == name:
                return min(rows[relation].num_dst, count)
        return count


def _mlp(num_in: int, hidden: int, num_out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(num_in, hidden), nn.ReLU(), nn.Linear(hidden, num_out))


def _columns_of(
    config: GnnConfig, shapes: Mapping[str, InputShape]
) -> tuple[dict[str, range], int]:
    """Return where knowledge rows stand, by type, and how many numbers the others have."""
    columns, rest = {}, set()
    for name, shape in shapes.items():
        own = shape.columns(config.prior)
        if own is None or shape.dim <= len(own):
            found = ", ".join(feature for feature, _ in shape.dims) or "none"
            raise ConfigError(
                f"model bem: got prior {config.prior!r} and node type {name!r} with the "
                f"dense features {found}; expected the feature with the rows of a "
                "knowledge graph, and one more with those of a behavior graph"
            )
        columns[name] = own
        rest.add(shape.dim - len(own))
    if len(rest) > 1 or len({len(own) for own in columns.values()}) > 1:
        raise ConfigError(
            "model bem: got node types with rows of different lengths, expected equal "
            "ones; choose features or edge types"
        )
    return columns, rest.pop()


register(
    ModelSpec(
        name="bem",
        make_model=Bem,
        messages="none",
        is_of_links=True,
        default_fanout=1,
        device_gap=lambda config: ("model", "all others"),
    )
)
