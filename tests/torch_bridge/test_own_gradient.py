"""A backward operator of the user's own, and operators without one, in torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

SOFTMAX = "exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)"

SCRIPT = """
import torch
import own

x = torch.randn(5, 33, requires_grad=True)
upstream = torch.randn(5, 33)
torch.ops.own.soft_hand(x).backward(upstream)
other = x.detach().clone().requires_grad_()
torch.softmax(other, -1).backward(upstream)
torch.testing.assert_close(x.grad, other.grad)
for op, words in (("only_forward", '"gradient": false'), ("row_gap", "no formula and no gradient")):
    y = getattr(torch.ops.own, op)(torch.randn(4, 8, requires_grad=True))
    try:
        y.sum().backward()
    except NotImplementedError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{op} gave no gradient, and did not say so")
"""


def tensors(*names: str, **fields: object) -> list[dict[str, object]]:
    return [{"name": name, "type": "float32", **fields} for name in names]


@pytest.mark.slow
def test_torch_takes_the_named_gradient_and_says_where_there_is_none(tmp_path: Path) -> None:
    # It used to derive its own beside the user's, and to leave `grad` at None without a word.
    prototype = [
        {
            "op": "SoftHand",
            "gradient": "SoftHandBack",
            "input_desc": tensors("x"),
            "output_desc": tensors("y", formula=SOFTMAX),
        },
        {
            "op": "SoftHandBack",
            "input_desc": tensors("grad_y", "y"),
            "output_desc": tensors("grad_x", formula="y*(grad_y - sum(grad_y*y, axis=-1))"),
        },
        {
            "op": "OnlyForward",
            "gradient": False,
            "input_desc": tensors("x"),
            "output_desc": tensors("y", formula="x*2"),
        },
        {
            "op": "RowGap",
            "input_desc": tensors("x"),
            "output_desc": tensors("y", shape="reduce(x, axis=-1, keepdims=true)"),
        },
    ]
    (tmp_path / "own.json").write_text(json.dumps(prototype))

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    said = run("-m", "opkit", "gen", "-i", "own.json", "-o", "project")
    assert 'OnlyForward: no gradient for x: the prototype says "gradient": false' in said
    assert "RowGap: no gradient for x: there is no formula and no gradient" in said
    run("-m", "opkit", "build", "project")
    run("-c", f"import sys; sys.path.insert(0, 'project')\n{SCRIPT}")
