"""What each head writes to the residual stream, as a norm.

The output projection is found by what goes into it, the heads' outputs side by side,
and by nothing else: names differ from model to model.
"""

from __future__ import annotations

import torch

from .capture import CaptureError

_CHECK = 64.0  # rounding errors by which a projection may differ from its own matrix; chosen, not derived


def is_projection(module: torch.nn.Module) -> bool:
    """Whether a module is a linear map, or has one in it (as LoRA's wraps have)."""
    return any(isinstance(m, torch.nn.Linear) or type(m).__name__ == "Conv1D" for m in module.modules())


def is_plain(module: torch.nn.Module) -> bool:
    """Whether a module is a linear map and nothing else."""
    return type(module) is torch.nn.Linear or type(module).__name__ == "Conv1D"


def matrix(module: torch.nn.Module, width: int, dtype: torch.dtype) -> torch.Tensor:
    """W [width, d_model] of a module that computes y = x W + b, as it multiplies.

    A plain Linear or Conv1D has it; of any other (LoRA, quantized) the rows are what
    the module makes of the unit vectors, less b.
    """
    weight = getattr(module, "weight", None)
    if isinstance(weight, torch.Tensor) and weight.dim() == 2 and weight.dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        if type(module) is torch.nn.Linear and weight.shape[1] == width:
            return weight.detach().T.to(dtype)
        if type(module).__name__ == "Conv1D" and weight.shape[0] == width:
            return weight.detach().to(dtype)
    device = next(module.parameters()).device
    units = torch.cat([torch.eye(width, dtype=dtype, device=device), torch.zeros(1, width, dtype=dtype, device=device)])
    rows = module(units[None])[0]
    return rows[:-1] - rows[-1]


def write_norms(heads: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    """‖A V W_O,h‖_F of each head, [H] float32, before any bias or norm behind it.

        ‖o_h W_h‖_F² = tr(o_hᵀ o_h · W_h W_hᵀ)

    heads is o [H, T, d_v]; the traces are in float64. Raises CaptureError where module
    is no affine map of its input. Cost: H·(T + d_model)·d_v² and nothing of size T·d_model.
    """
    n, _, width = heads.shape
    w = matrix(module, n * width, heads.dtype)
    if not is_plain(module):
        _check(heads, module, w)
    o, w = heads.double(), w.double().view(n, width, -1)
    square = ((o.mT @ o) * (w @ w.mT)).sum((1, 2))
    return square.clamp_min(0).sqrt().float()


def _check(heads: torch.Tensor, module: torch.nn.Module, w: torch.Tensor) -> None:
    x = heads.transpose(0, 1).reshape(1, heads.shape[1], -1)
    got = (module(x) - module(torch.zeros_like(x)))[0].double()
    want = x[0].double() @ w.double()
    off, size = (got - want).norm(), (x.double().norm() * w.double().norm())
    if not off <= _CHECK * torch.finfo(heads.dtype).eps * size:
        raise CaptureError(f"{type(module).__name__} behind attention is no linear map (off by {off:.3g} of {size:.3g}), want one for write norms")
