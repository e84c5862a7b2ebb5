"""Projects in msopgen's layout: described by their OpDefs, built, called through aclnn."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from opkit import emulator, runtime
from opkit.errors import BuildError, UsageError
from opkit.toolchain import Artifact, build, find_compiler, load_project, operator_images
from opkit.toolchain.building.described import parse_description
from opkit.toolchain.projects.tree import read_folder, read_listing

# The sum of a list of tensors, scaled; its tiling data is defined by macros, one struct in another.
WEIGHTED = Path(__file__).parent / "data" / "weighted"
BIASED = Path(__file__).parent / "data" / "biased"
POSITIVES = Path(__file__).parent / "data" / "positives"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project like msopgen's, without a pyproject.toml."""
    root = tmp_path_factory.mktemp("tree") / "weighted"
    shutil.copytree(WEIGHTED, root)
    return root


@pytest.fixture(scope="module")
def artifact(tree: Path) -> Artifact:
    notes: list[str] = []
    made = build(load_project(tree / "op_kernel"), warn=notes.append)
    assert any("WeightedSum" in note and "31" in note for note in notes)  # ge::DT_INT2
    return made


def test_a_tree_is_described_by_its_opdefs(artifact: Artifact) -> None:
    (spec,) = artifact.project.operators
    assert spec.op == "WeightedSum"
    assert [tensor.param_type for tensor in (*spec.inputs, *spec.outputs)] == [
        "dynamic",
        "required",
    ]
    assert [attr.default for attr in spec.attrs] == [1.0, ((3, 4), (5,))]
    assert [dtype.name for dtype in spec.inputs[0].dtypes] == ["float32"]


def test_a_build_leaves_images_as_run_time_compilation_does(artifact: Artifact) -> None:
    # Whoever wanted to know what is in them read the manifest, with a chip of its own.
    (found,) = operator_images(artifact.folder)
    assert (found.op, found.dtypes, found.is_callable) == ("WeightedSum", ("float32",) * 2, True)
    assert found.image.chip == artifact.chip
    assert [kernel.name for kernel in found.image.kernels] == ["weighted_sum"]
    with pytest.raises(UsageError, match=r"manifest\.json: cannot be read"):
        operator_images(artifact.folder / "absent")


def test_a_dynamic_input_reaches_tiling_and_kernel_as_a_list(artifact: Artifact) -> None:
    library = runtime.open(artifact.folder)
    parts = [np.arange(6, dtype=np.float32), np.full(6, 10, dtype=np.float32)]
    (result,) = library.run("WeightedSum", [parts], {"factor": 0.5, "offsets": [[7]]})
    np.testing.assert_array_equal(result, 0.5 * (parts[0] + parts[1]) + 7)
    with pytest.raises(UsageError, match="mixes float32 and int32"):
        library.run("WeightedSum", [[parts[0], parts[1].astype(np.int32)]])
    with pytest.raises(UsageError, match='attribute "offsets" is list of lists of int, not list'):
        library.run("WeightedSum", [parts], {"offsets": [1, 2]})


def run_with_aclnn(
    source: Path, artifact: Artifact, program: Path
) -> subprocess.CompletedProcess[str]:
    """Return what a program says that links an artifact's aclnn functions."""
    library = emulator.library_path().parent
    api = artifact.folder / "op_api"
    command = [
        *find_compiler().argv,
        *("-std=c++17", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(program)),
        *("-I", str(emulator.include_dir()), "-I", str(api / "include")),
        *("-L", str(api / "lib"), "-lcust_opapi", "-L", str(library), "-lopkit_emulator"),
        *(f"-Wl,-rpath,{library}", f"-Wl,-rpath,{api / 'lib'}"),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_scalars_take_the_data_type_of_the_tensors_and_stay_exact(tmp_path: Path) -> None:
    root = tmp_path / "biased"
    shutil.copytree(BIASED, root)
    # Its output's shape is inferred by nobody: the program's tensor says it.
    artifact = build(load_project(root))
    done = run_with_aclnn(BIASED / "main.cpp", artifact, tmp_path / "main")
    assert (done.returncode, done.stdout.split()) == (
        0,
        ["2", "1.75", "9", str(2**54 + 2)],
    ), done.stderr


@pytest.mark.slow
def test_an_aclnn_tensor_has_the_shape_that_the_kernel_wrote(tmp_path: Path) -> None:
    root = tmp_path / "positives"
    shutil.copytree(POSITIVES, root)
    artifact = build(load_project(root))
    done = run_with_aclnn(POSITIVES / "main.cpp", artifact, tmp_path / "main")
    assert (done.returncode, done.stdout.split()) == (0, ["1", "3", "6"]), done.stderr


def test_a_program_calls_the_operator_by_its_aclnn_functions(
    artifact: Artifact, tmp_path: Path
) -> None:
    done = run_with_aclnn(WEIGHTED / "main.cpp", artifact, tmp_path / "main")
    assert done.stdout.splitlines() == [
        "null 161001",
        "type 161002",
        "first 0",
        "second 0 of 32",
        "again 161002",
        # 2 * ([1 2 3; 4 5 6] + [1 3 5; 2 4 6]) + 3
        "7 13 19 15 21 27 ",
    ]
    assert "x is null" in done.stderr
    assert "the call is float32 -> int32; its OpDef lists: float32 -> float32" in done.stderr
    assert "the executor was used before" in done.stderr


def test_the_prototype_header_names_inputs_outputs_and_attributes(artifact: Artifact) -> None:
    text = (artifact.folder / "op_api/include/op_proto.h").read_text()
    assert ".DYNAMIC_INPUT(x, TensorType({DT_FLOAT}))" in text
    assert ".ATTR(offsets, ListListInt, {{3, 4}, {5}})" in text


def test_a_second_build_makes_nothing(artifact: Artifact, tree: Path) -> None:
    again = build(load_project(tree))
    assert (again.compiled, again.cached) == (0, 0)
    assert [spec.op for spec in again.project.operators] == ["WeightedSum"]


def test_hidden_folders_hold_no_sources(tmp_path: Path) -> None:
    # A notebook's copies defined each operator twice.
    root = tmp_path / "weighted"
    shutil.copytree(WEIGHTED, root)
    before = load_project(root).sources("op_host")
    shutil.copytree(root / "op_host", root / "op_host" / ".ipynb_checkpoints")
    assert load_project(root).sources("op_host") == before != ()


def test_cmake_says_which_kernel_file_is_whose(tmp_path: Path) -> None:
    kernel = tmp_path / "op_kernel"
    (kernel / "sub").mkdir(parents=True)
    (kernel / "sub/other.cpp").write_text(
        'extern "C" __global__ __aicore__ void entry_of_add(GM_ADDR x) {}\n'
    )
    (kernel / "CMakeLists.txt").write_text(
        "npu_op_kernel_sources(kernels OP_TYPE AddCustom KERNEL_DIR sub KERNEL_FILE other.cpp)\n"
        "npu_op_kernel_options(kernels ALL OPTIONS -DROWS=2 --save-temp-files)\n"
        "# npu_op_kernel_options(kernels ALL OPTIONS -DROWS=3)\n"
    )
    (tmp_path / "op_host").mkdir()
    (tmp_path / "op_host/add_custom.cpp").touch()
    tree = read_folder(tmp_path, cache=tmp_path)
    assert tree is not None
    found = tree.find_kernel("AddCustom", None, soc_config="ascend910b")
    assert (found.source.name, found.entry) == ("other.cpp", "entry_of_add")
    assert tree.kernel_options("AddCustom", soc_config="ascend910b") == ("-DROWS=2",)
    for folder, text in (
        ("op_kernel", "npu_op_kernel_options(kernels AddCustom OPTIONS --cce-auto-sync=off)"),
        ("op_host", "add_ops_compile_options(OP_NAME AddCustom OPTIONS --cce-auto-sync=off -g)"),
    ):
        (tmp_path / folder / "CMakeLists.txt").write_text(text)
        tree = read_folder(tmp_path, cache=tmp_path / "cache")
        assert tree is not None
        assert "-DOPKIT_NO_AUTO_SYNC" in tree.kernel_options("AddCustom", soc_config="ascend910b")
        (tmp_path / folder / "CMakeLists.txt").unlink()
    with pytest.raises(UsageError, match="MulCustom has no kernel"):
        tree.find_kernel("MulCustom", None, soc_config="ascend910b")


def test_a_header_may_define_the_function_that_is_launched(tmp_path: Path) -> None:
    # Sources for several chips that share a macro with the function had no kernel.
    kernel = tmp_path / "op_kernel"
    kernel.mkdir()
    (kernel / "add_custom.cpp").write_text('#include "add_custom.h"\nADD_ENTRY(Add)\n')
    (kernel / "add_custom.h").write_text('#include "common.h"\n')
    (kernel / "common.h").write_text(
        "// __global__ __aicore__ void not_this(GM_ADDR x)\n"
        "#define ADD_ENTRY(Kernel)                                        \\\n"
        '    extern "C" __global__ __aicore__ void add_custom(GM_ADDR x)  \\\n'
        "    { Kernel(x); }\n"
    )
    (tmp_path / "op_host").mkdir()
    (tmp_path / "op_host/add_custom.cpp").touch()
    tree = read_folder(tmp_path, cache=tmp_path)
    assert tree is not None
    found = tree.find_kernel("AddCustom", None, soc_config="ascend910b")
    assert (found.source.name, found.entry) == ("add_custom.cpp", "add_custom")
    # A file of another name that includes the same header is no operator's of its own.
    with pytest.raises(UsageError, match="MulCustom has no kernel"):
        tree.find_kernel("MulCustom", None, soc_config="ascend910b")


def test_a_kernel_is_found_whatever_stands_before_its_name(tmp_path: Path) -> None:
    # A tree had a pattern of its own: what opkit cc launched, opkit build did not find.
    for head in (
        "__global__ __attribute__((aiv)) __aicore__ void",
        "__aicore__ __global__ inline void",
        "__global__ /* [aicore] */ __aicore__\n// of this chip\nvoid",
    ):
        (tmp_path / "op_kernel").mkdir(exist_ok=True)
        source = tmp_path / "op_kernel" / "sums.cpp"
        source.write_text(f'// __global__ void no(int)\nextern "C" {head} add_custom(int a) {{}}\n')
        (tmp_path / "op_host").mkdir(exist_ok=True)
        (tmp_path / "op_host" / "sums.cpp").write_text("OP_ADD(AddCustom);\n")
        found = read_folder(tmp_path, cache=tmp_path)
        assert found is not None
        kernel = found.find_kernel("AddCustom", None, soc_config="ascend910b")
        assert (kernel.source, kernel.entry) == (source, "add_custom"), head


def test_a_listing_names_files_of_a_flat_folder_by_chip(tmp_path: Path) -> None:
    for name in ("a b.cpp", "other.cpp", "host.cpp"):
        (tmp_path / name).write_text("__global__ __aicore__ void add(GM_ADDR x) {}\n")
    rows = [
        ("package", "mine"),
        ("root", str(tmp_path)),
        ("host", str(tmp_path / "host.cpp")),
        ("host-option", "-DA=1"),
        ("kernel", "kernels", "AddCustom", ".", "other.cpp", "Ascend310P"),
        ("kernel", "kernels", "AddCustom", ".", "a b.cpp", "Ascend310B,Ascend910B1"),
        ("options", "kernels", "ALL", "ascend310p", "-DROWS=2"),
        ("options", "kernels", "AddCustom", "-", "-DROWS=3", "-g"),
        ("base", "kernels", str(tmp_path)),
    ]
    listing = tmp_path / "mine.operators"
    listing.write_text("".join("\t".join(row) + "\n" for row in rows))
    name, tree = read_listing(listing)
    assert (name, tree.root, tree.host_options) == ("mine", tmp_path, ("-DA=1",))
    assert tree.host_sources == (tmp_path / "host.cpp",)
    found = tree.find_kernel("AddCustom", None, soc_config="ascend910b")
    assert (found.source.name, found.entry) == ("a b.cpp", "add")
    assert tree.kernel_options("AddCustom", soc_config="ascend910b") == ("-DROWS=3",)
    listing.write_text("package\tmine\nroot\t/\n")
    with pytest.raises(UsageError, match="mine has no host sources"):
        read_listing(listing)


def test_lists_of_different_lengths_in_an_opdef_are_refused() -> None:
    def param(name: str, dtypes: list[int]) -> dict[str, object]:
        flags = ("is_dtype_list", "is_value_dependent", "scalar_kind", "is_auto_contiguous")
        return {
            "name": name,
            "param_type": "required",
            "dtypes": dtypes,
            "formats": [2],
            "ignores_contiguous": False,
            "follow": "",
            "follows_dtype": False,
            **dict.fromkeys(flags, False),
        }

    operator = {
        "op": "AddCustom",
        "inputs": [param("x", [0, 1])],
        "outputs": [param("y", [0])],
        "attrs": [],
        "configs": [],
        "unsupported": "",
    }
    document = {"operators": [operator], "tiling_structs": []}
    with pytest.raises(BuildError, match="lists different numbers of types: x 2, y 1"):
        parse_description(document, soc_config="ascend910b", source=Path("host.so"))
