"""TransData of the high-level library against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.errors import KernelFault

FORMATS = {"blocks": "NDC1HWC0", "fractals": "FRACTAL_Z_3D"}
PROLOGUE = (
    "".join(
        f"constexpr TransDataConfig kTo{name} = {{{{DataFormat::NCDHW, DataFormat::{kind}}}}};\n"
        f"constexpr TransDataConfig kFrom{name} = {{{{DataFormat::{kind}, DataFormat::NCDHW}}}};\n"
        for name, kind in FORMATS.items()
    )
    .replace("{{", "{")
    .replace("}}", "}")
)
SIZES = (
    "const auto plain = MakeLayout(MakeShape(number(0), number(1), number(2), number(3), number(4)), MakeStride()); "
    "const auto split = MakeLayout(MakeShape(number(0), number(2), 1u, number(3), number(4), 16u), MakeStride()); "
)
CALLS = {}
for _name in FORMATS:
    CALLS[f"To{_name}"] = (
        SIZES + "TransDataParams<decltype(plain), decltype(split)> params = {plain, split}; "
        f"TransData<kTo{_name}>(OUT(half, 0), IN(half, 0), space, params);"
    )
    CALLS[f"From{_name}"] = (
        SIZES + "TransDataParams<decltype(split), decltype(plain)> params = {split, plain}; "
        f"TransData<kFrom{_name}>(OUT(half, 0), IN(half, 0), space, params);"
    )
Calls = Callable[..., list[np.ndarray]]


@pytest.fixture(scope="module")
def trans_data(local_calls: Callable[..., Calls]) -> Calls:
    return local_calls(CALLS, PROLOGUE)


def to_blocks(x: np.ndarray) -> np.ndarray:
    n, c, d, h, w = x.shape
    padded = np.pad(x, [(0, 0), (0, -c % 16), (0, 0), (0, 0), (0, 0)])
    return padded.reshape(n, -1, 16, d, h, w).transpose(0, 3, 1, 4, 5, 2)


def to_fractals(x: np.ndarray) -> np.ndarray:
    n, c, d, h, w = x.shape
    padded = np.pad(x, [(0, -n % 16), (0, -c % 16), (0, 0), (0, 0), (0, 0)])
    return padded.reshape(-(-n // 16), 16, -(-c // 16), 16, d, h, w).transpose(4, 2, 5, 6, 0, 1, 3)


@pytest.mark.parametrize(
    "shape", [(1, 16, 1, 4, 4), (2, 20, 2, 3, 5), (3, 5, 1, 1, 33), (17, 3, 2, 2, 2)]
)
@pytest.mark.parametrize("kind", FORMATS)
def test_there_and_back(trans_data: Calls, kind: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).uniform(-9, 9, shape).astype(np.float16)
    n, c, d, h, w = shape
    split = np.ascontiguousarray({"blocks": to_blocks, "fractals": to_fractals}[kind](x))
    # In NCDHW an image is one axis, padded to whole data blocks.
    padding = -(h * w) % 16
    plain = np.pad(x.reshape(n, c, d, h * w), [(0, 0)] * 3 + [(0, padding)], constant_values=123)
    space = 17 * (h * w + padding) * 2
    found = trans_data(f"To{kind}", [plain], [np.full_like(split, 55)], shape, space)[0]
    np.testing.assert_array_equal(found, split)
    found = trans_data(f"From{kind}", [split], [np.zeros_like(plain)], shape, space)[0]
    np.testing.assert_array_equal(found[..., : h * w], plain[..., : h * w])


def test_too_little_temporary_space_is_refused(trans_data: Calls) -> None:
    x = np.zeros((1, 16, 1, 16), np.float16)
    with pytest.raises(KernelFault, match="17 channels of an image"):
        trans_data("Toblocks", [x], [x], [1, 16, 1, 4, 4], 512)
