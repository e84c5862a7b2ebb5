"""From a prototype to an installed operator, as a user goes: every command a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

import opkit

pytestmark = pytest.mark.slow

PROTOTYPES = Path(__file__).parents[1] / "examples" / "prototypes"
PACKAGES = [str(Path(opkit.__file__).parents[1]), *sysconfig.get_paths().values()]


@dataclass(frozen=True)
class Machine:
    """A user's Python and working directory."""

    python: Path
    folder: Path
    environment: dict[str, str]

    def run(
        self, *arguments: str | Path, code: int = 0, stdin: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with arguments and hold it to its exit code."""
        done = subprocess.run(
            [str(self.python), *map(str, arguments)],
            cwd=cwd or self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done

    def opkit(self, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run an opkit command."""
        return self.run("-m", "opkit", *arguments, code=code)

    def opkit_json(self, *arguments: str | Path, code: int = 0) -> dict:
        """Run an opkit command under --json; its stdout is one document."""
        return json.loads(self.opkit(*arguments, "--json", code=code).stdout)

    def script(self, text: str) -> str:
        """Run a script from the working directory and return what it prints."""
        return self.run("-", stdin=text).stdout

    def see(self, project: Path) -> None:
        """Import from a project before all else: the README's first command installs GELUCustom."""
        path = self.environment["PYTHONPATH"]
        self.environment["PYTHONPATH"] = os.pathsep.join([str(project), path])

    def gen(self, name: str, *, source: Path | None = None) -> Path:
        """Generate a project from an example's prototype, or from a file."""
        self.opkit("gen", "-i", source or PROTOTYPES / f"{name}.json", "-o", name)
        return self.folder / name


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build cache that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "whole-path-cache"


@pytest.fixture
def machine(tmp_path: Path, cache: Path) -> Machine:
    """This Python, with its build cache elsewhere; the working directory is empty."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "NO_COLOR": "1"}
    environment["PYTHONPATH"] = PACKAGES[0]
    environment.pop("PYTEST_ADDOPTS", None)  # meant for this run, not for the pytest of a project
    return Machine(Path(sys.executable), tmp_path, environment)


@pytest.fixture
def fresh(machine: Machine) -> Machine:
    """A new virtual environment that sees the packages of this one."""
    place = machine.folder / ".venv"
    venv.create(place, with_pip=True)
    site = next((place / "lib").glob("python*")) / "site-packages"
    (site / "of_this_one.pth").write_text("\n".join(dict.fromkeys(PACKAGES)))
    environment = dict(machine.environment)
    del environment["PYTHONPATH"]
    environment["PATH"] = os.pathsep.join(
        [str(place / "bin"), str(Path(sys.executable).parent), environment["PATH"]]
    )
    return Machine(place / "bin" / "python", machine.folder, environment)


def pip_install(machine: Machine, project: Path) -> None:
    machine.run("-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", project)


ADD = """
import numpy as np, sys
import add_custom
assert "build" not in str(add_custom.__file__)
for dtype in (np.float16, np.float32, np.int32):
    x = np.arange(1001).astype(dtype)
    z = add_custom.add_custom(x, x)
    assert z.dtype == dtype and (z == x + x).all()
assert "torch" not in sys.modules
print("numpy is right")
"""


def test_add_goes_from_its_prototype_to_pip_and_back(fresh: Machine) -> None:
    project = fresh.gen("add_custom")
    built = fresh.opkit_json("build", project)
    assert Path(built["manifest"]).is_file()
    report = fresh.opkit_json("test", project, "-k", "not 1000003 and not 1048576")
    assert report["passed"]
    assert {"AddCustom", "AddCustomGrad"} == {case["op"] for case in report["cases"]}
    profile = fresh.opkit_json("profile", project, "--shape", "4096")
    assert json.dumps(profile).count("Ascend910B2")
    pip_install(fresh, project)
    # Not the checkout's build: what the wheel carries.
    project.rename(project.with_name("elsewhere"))
    assert "numpy is right" in fresh.script(ADD)
    fresh.run("-m", "pip", "uninstall", "-q", "-y", "add_custom")
    fresh.run("-c", "import add_custom", code=1)
    assert not list((fresh.folder / ".venv").rglob("add_custom*"))


def test_the_demo_takes_gelu_the_whole_way(fresh: Machine) -> None:
    done = fresh.opkit_json("demo", "gelu_custom")
    assert done["ok"] and all(step["exit_code"] == 0 for step in done["steps"])
    assert any("install" in step["command"] for step in done["steps"])
    fresh.run("-m", "pip", "uninstall", "-q", "-y", "gelu_custom")
    # This test's own Python may have one too, from the README's first command.
    assert not list((fresh.folder / ".venv").rglob("gelu_custom*"))


def test_the_tests_of_a_generated_project_pass(machine: Machine) -> None:
    project = machine.gen("gelu_custom")
    machine.opkit("build", project)
    machine.see(project)
    done = machine.run("-m", "pytest", "-q", "-p", "no:cacheprovider", project, cwd=project)
    assert " passed" in done.stdout
    assert "failed" not in done.stdout


def test_without_a_formula_it_builds_and_launches_and_its_test_says_no_reference(
    fresh: Machine,
) -> None:
    project = fresh.gen("reduce_max_custom")
    fresh.opkit("build", project)
    done = fresh.opkit("test", project, code=1)
    assert "no reference given" in done.stdout
    assert "no reference given is not a pass" in done.stdout
    report = fresh.opkit_json("test", project, code=1)
    assert not report["passed"]
    assert {case["verdict"] for case in report["cases"]} == {"no reference given"}
    fresh.opkit("profile", project)
    pip_install(fresh, project)
    printed = fresh.script(
        "import numpy as np, reduce_max_custom as r\n"
        "y, idx = r.reduce_max_custom(np.ones((4, 8), np.float32), reduceDim=1)\n"
        "print(y.dtype, idx.dtype)\n"
    )
    assert printed.split() == ["float32", "int32"]


def test_several_operators_of_one_file_are_one_package(machine: Machine) -> None:
    operators = [
        *json.loads((PROTOTYPES / "add_custom.json").read_text()),
        json.loads((PROTOTYPES / "gelu_custom.json").read_text()),
    ]
    source = machine.folder / "both.json"
    source.write_text(json.dumps(operators))
    project = machine.gen("both", source=source)
    report = machine.opkit_json("test", project, "-k", "float16 and 255 or float16 and 2049")
    assert report["passed"]
    ops = {case["op"] for case in report["cases"]}
    assert ops == {"AddCustom", "AddCustomGrad", "GELUCustom", "GELUCustomGrad"}
    machine.see(project)
    printed = machine.script(
        "import numpy as np, both\n"
        "x = np.ones(5, np.float16)\n"
        "print(both.add_custom(x, x)[0], round(float(both.gelu_custom(x)[0]), 2))\n"
    )
    assert printed.split() == ["2.0", "0.84"]


TWO = """
import threading
import numpy as np
import add_custom, gelu_custom
x = np.linspace(-3, 3, 4097).astype(np.float16)
wide = x.astype(np.float64)
gelu = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
wrong = []
def call():
    for _ in range(3):
        if not (add_custom.add_custom(x, x) == x + x).all():
            wrong.append("add")
        if np.abs(gelu_custom.gelu_custom(x) - gelu).max() > 2e-3:
            wrong.append("gelu")
threads = [threading.Thread(target=call) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("wrong:", wrong)
"""


def test_two_projects_work_side_by_side_in_one_process_and_on_threads(machine: Machine) -> None:
    for name in ("add_custom", "gelu_custom"):
        project = machine.gen(name)
        machine.opkit("build", project)
        machine.see(project)
    assert machine.script(TWO) == "wrong: []\n"


TORCH = """
import numpy as np, torch
import gelu_custom
from gelu_custom import golden
from opkit.errors import OpkitError
from opkit.testing import assert_close

operator = torch.ops.gelu_custom.gelu_custom
torch.manual_seed(0)

x = torch.randn(33, 65, dtype=torch.float16, requires_grad=True)
torch.library.opcheck(operator.default, (x,))
print("opcheck")

compiled = torch.compile(lambda v: operator(v) * 2, fullgraph=True, backend="aot_eager")
assert torch.equal(compiled(x), operator(x) * 2)
print("compile")

upstream = torch.randn_like(x)
operator(x).backward(upstream)
wide = x.detach().double().numpy()
assert_close(x.grad.numpy(), golden.gelu_custom_grad(upstream.double().numpy(), wide))
print("autograd")

empty = torch.empty(0, 7, dtype=torch.float16, requires_grad=True)
result = gelu_custom.gelu_custom(empty)
assert result.shape == (0, 7)
result.sum().backward()
assert empty.grad.shape == (0, 7)
print("zero-size")

strided = torch.randn(64, 48, dtype=torch.float16).t()[::2, 1:]
assert not strided.is_contiguous()
assert torch.equal(operator(strided), operator(strided.contiguous()))
print("strided")

for wrong in (torch.zeros(4), torch.zeros(4, dtype=torch.int8)):
    try:
        gelu_custom.gelu_custom(wrong)
    except (RuntimeError, TypeError) as error:
        assert "does not take inputs of type" in str(error), error
    else:
        raise AssertionError("a wrong dtype was taken")
print("refused")
module = gelu_custom.GELUCustom()
assert torch.equal(module(x), operator(x))
print("module")
"""


@pytest.mark.torch
def test_torch_sees_a_whole_operator(machine: Machine) -> None:
    project = machine.gen("gelu_custom")
    machine.opkit("build", project)
    machine.see(project)
    steps = ["opcheck", "compile", "autograd", "zero-size", "strided", "refused", "module"]
    assert machine.script(TORCH).split() == steps


def test_a_kernel_name_of_the_users_own_works_everywhere(machine: Machine) -> None:
    # The loader used to look for snake_case(op), here "add_custom".
    prototype = json.loads((PROTOTYPES / "add_custom.json").read_text())[0]
    prototype["kernel_name"] = "plus"
    source = machine.folder / "plus.json"
    source.write_text(json.dumps(prototype))
    project = machine.gen("plus", source=source)
    assert machine.opkit_json("test", project, "-k", "float32 and 255")["passed"]
    machine.see(project)
    printed = machine.script(
        "import numpy as np, plus\nprint(plus.plus(np.ones(3, np.int32), np.ones(3, np.int32)))\n"
    )
    assert printed == "[2 2 2]\n"
