"""Operators called from Python, and everything that can be wrong with a call."""

from __future__ import annotations

import json
import re
import signal
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import HostRefusal, KernelFault, SetupError, UsageError
from opkit.sanitizer import Check

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def test_an_operator_runs_with_its_defaults(scale_add) -> None:
    (y,) = runtime.open(scale_add).run("ScaleAdd", [X])
    np.testing.assert_array_equal(y, 2 * X)


def test_attributes_and_optional_inputs_reach_tiling_and_kernel(scale_add) -> None:
    library = runtime.open(scale_add)
    (y,) = library.run("ScaleAdd", [X, X[::-1]], {"scale": 0.5})
    np.testing.assert_array_equal(y, 0.5 * X + X[::-1])
    (y,) = library.run("ScaleAdd", [X, None], {"scale": np.float32(3)})
    np.testing.assert_array_equal(y, 3 * X)


def test_the_variant_is_chosen_by_dtype(scale_add) -> None:
    (y,) = runtime.open(scale_add).run("ScaleAdd", [X.astype(np.int32)])
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, 2 * X)


def test_infer_gives_shape_and_dtype_without_a_launch(scale_add) -> None:
    found = runtime.open(scale_add).infer("ScaleAdd", [X])
    assert found == [runtime.OutputSpec((3, 4), "float32")]


@pytest.mark.parametrize("shape", [(), (1,), (7, 1, 3), (2, 3, 1, 2, 1, 1, 2, 1)])
def test_any_rank_up_to_eight_is_taken(scale_add, shape) -> None:
    x = np.full(shape, 1.5, dtype=np.float32)
    (y,) = runtime.open(scale_add).run("ScaleAdd", [x])
    assert y.shape == shape
    np.testing.assert_array_equal(y, 2 * x)


def test_arrays_of_other_layout_and_byte_order_are_copied(scale_add) -> None:
    library = runtime.open(scale_add)
    np.testing.assert_array_equal(library.run("ScaleAdd", [X.T])[0], 2 * X.T)
    np.testing.assert_array_equal(library.run("ScaleAdd", [X.astype(">f4")])[0], 2 * X)


def test_an_empty_tensor_is_inferred_and_not_launched(scale_add) -> None:
    (y,) = runtime.open(scale_add).run("ScaleAdd", [X[:0]])
    assert y.shape == (0, 4)


def test_calls_from_several_threads_do_not_mix(scale_add) -> None:
    library = runtime.open(scale_add)
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(20):
            (y,) = library.run("ScaleAdd", [X], {"scale": float(number)})
            if not np.array_equal(y, number * X):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("operator", "inputs", "attrs", "message"),
    [
        ("ScaleAd", [X], {}, 'has no operator "ScaleAd"; it has: ScaleAdd'),
        ("ScaleAdd", [], {}, '[ScaleAdd] needs its input "x"'),
        ("ScaleAdd", [X, X, X], {}, "[ScaleAdd] takes 2 inputs, not 3"),
        ("ScaleAdd", [X, X.astype(np.int32)], {}, "float32, int32; its OpDef lists: float32, flo"),
        ("ScaleAdd", [X.astype(np.float16)], {}, "does not take inputs of type float16, absent"),
        ("ScaleAdd", [X], {"alpha": 1.0}, 'has no attribute "alpha"; it has: scale'),
        ("ScaleAdd", [X], {"scale": "2"}, 'its attribute "scale" is float, not string'),
        ("ScaleAdd", [X], {"scale": 1j}, 'attribute "scale" has the type complex'),
        ("ScaleAdd", [np.zeros((1,) * 9, np.float32)], {}, "has 9 dimensions; at most 8"),
        ("ScaleAdd", [X.astype(np.complex128)], {}, '"complex128" is not a data type'),
    ],
)
def test_a_wrong_call_says_what_is_wrong(scale_add, operator, inputs, attrs, message) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        runtime.open(scale_add).run(operator, inputs, attrs)


def test_a_dtype_is_carried_by_its_storage_type_only(scale_add) -> None:
    with pytest.raises(UsageError, match="bfloat16 is carried as uint16, but the array is float32"):
        runtime.open(scale_add).run("ScaleAdd", [X], dtypes=["bfloat16"])
    with pytest.raises(UsageError, match="does not take inputs of type bfloat16"):
        runtime.open(scale_add).run("ScaleAdd", [X.astype(np.uint16)], dtypes=["bf16"])


def test_what_the_tiling_function_logged_is_the_message(scale_add) -> None:
    with pytest.raises(HostRefusal) as caught:
        runtime.open(scale_add).run("ScaleAdd", [X], {"scale": -1.0})
    assert "[ScaleAdd] its tiling function failed" in str(caught.value)
    assert "scale is -1, it must not be negative" in str(caught.value)
    assert re.search(r"host.cpp:\d+", str(caught.value))


def test_tiling_data_is_zero_at_each_call_also_behind_what_the_last_one_used(
    build_artifact, host_text
) -> None:
    # The memory is kept from call to call.
    text = """
  auto* bytes = static_cast<uint8_t*>(context->GetRawTilingData()->GetData());
  const size_t capacity = context->GetRawTilingData()->GetCapacity();
  for (size_t i = sizeof(TilingData); tiling->scale == 9 && i < capacity; ++i) {
    if (bytes[i] == 0) continue;
    OP_LOGE(context, "byte %zu is not zero", i);
    return ge::GRAPH_FAILED;
  }
  for (size_t i = sizeof(TilingData); tiling->scale == 7 && i < capacity; i += 4000) bytes[i] = 1;
"""
    check = "  if (tiling->scale < 0) {"
    library = runtime.open(build_artifact(host=changed(host_text, check, text + check)))
    for scale in (9.0, 7.0, 9.0, 7.0, 9.0):
        (y,) = library.run("ScaleAdd", [X], {"scale": scale})
        np.testing.assert_array_equal(y, scale * X)


def test_a_combination_without_a_kernel_names_those_that_are_there(build_artifact) -> None:
    folder = build_artifact(variants={"scale_add.dav-2201.int32-int32-int32.so": "int32_t"})
    with pytest.raises(SetupError) as caught:
        runtime.open(folder).run("ScaleAdd", [X])
    assert "no kernel scale_add.dav-2201.float32-float32-float32.so" in str(caught.value)
    assert "which holds scale_add.dav-2201.int32-int32-int32.so" in str(caught.value)


def test_a_chip_that_nothing_was_built_for_is_refused(scale_add) -> None:
    runtime.configure("Ascend310P3")
    with pytest.raises(SetupError, match=r"no kernel scale_add\.dav-2002\..*-c CHIP"):
        runtime.open(scale_add).run("ScaleAdd", [X])


def test_kernels_txt_names_the_kernel_of_an_operator(build_artifact, kernel_text) -> None:
    folder = build_artifact(
        kernel=kernel_text.replace("scale_add", "other_name"),
        variants={"other_name.dav-2201.float32-float32-float32.so": "float"},
        kernels_txt="ScaleAdd other_name\n",
    )
    np.testing.assert_array_equal(runtime.open(folder).run("ScaleAdd", [X])[0], 2 * X)


def test_on_a_poisoned_device_an_element_that_is_never_written_shows(
    build_artifact, kernel_text
) -> None:
    # Outputs used to start as zeros, which is right too often.
    lazy = changed(kernel_text, "out[i] = static_cast", "if (i != 2) out[i] = static_cast")
    library = runtime.open(build_artifact(kernel=lazy))
    runtime.configure(poison=True)
    (floats,) = library.run("ScaleAdd", [X])
    assert np.flatnonzero(np.isnan(floats)).tolist() == [2]
    whole = np.zeros(4, np.int32)
    (numbers,) = library.run("ScaleAdd", [whole])
    assert numbers.tolist() == [0, 0, 0x7F7F7F7F, 0]


def test_a_launch_that_does_nothing_is_a_fault_where_outputs_have_elements(
    build_artifact, kernel_text
) -> None:
    # Its outputs were judged like any others: whole numbers that the poison is right for passed.
    library = runtime.open(
        build_artifact(kernel=changed(kernel_text, "i < data.length", "i < data.length * 0"))
    )
    runtime.configure(poison=True)
    with pytest.raises(KernelFault, match="no instruction, and nothing has written output y"):
        library.run("ScaleAdd", [X])
    (empty,) = library.run("ScaleAdd", [X[:0]])
    assert empty.size == 0


@pytest.mark.parametrize("watch", ["poison", "checks"])
def test_an_input_that_the_kernel_changes_is_named(build_artifact, kernel_text, watch: str) -> None:
    stores = changed(kernel_text, "out[i] = static_cast", "in[i] = 7, out[i] = static_cast")
    library = runtime.open(build_artifact(kernel=stores))
    library.run("ScaleAdd", [X])
    assert library.changed_inputs() == []
    if watch == "poison":
        runtime.configure(poison=True)
        library.run("ScaleAdd", [X])
    else:
        with Check():
            library.run("ScaleAdd", [X])
    assert library.changed_inputs() == ["x"]


def test_what_a_tiling_function_sets_is_told_without_a_launch(scale_add) -> None:
    found = runtime.open(scale_add).tiling("ScaleAdd", [X], {"scale": 0.5})
    assert found.blocks > 0
    assert found.data[:8] == struct.pack("<If", X.size, 0.5)


def test_a_tiling_struct_larger_than_what_tiling_wrote_is_a_fault(
    build_artifact, kernel_text
) -> None:
    grown = changed(kernel_text, "float scale;", "float scale;\n  uint64_t more;")
    with pytest.raises(KernelFault) as caught:
        runtime.open(build_artifact(kernel=grown)).run("ScaleAdd", [X])
    assert caught.value.category == "IllegalOperand"
    assert "reads bytes 0..16 of its tiling data, but the tiling function wrote 8" in str(
        caught.value
    )
    assert caught.value.file is not None and caught.value.file.name == "kernel.cpp"
    assert caught.value.kernel == "scale_add"


def test_the_library_works_again_after_a_fault(build_artifact, kernel_text) -> None:
    crash = changed(
        kernel_text,
        "workspace[i % 64] = 1;",
        "workspace[i % 64] = 1; if (data.scale == 7) *(volatile int*)8 = 1;",
    )
    library = runtime.open(build_artifact(kernel=crash))
    with pytest.raises(KernelFault) as caught:
        library.run("ScaleAdd", [X], {"scale": 7.0})
    assert caught.value.category == "Crash"
    np.testing.assert_array_equal(library.run("ScaleAdd", [X])[0], 2 * X)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "SetBlockDim(tiling->length < platform.GetCoreNum() ? 1 : 4)",
            "GetNodeName()",
            "block dim to 0",
        ),
        ("workspace[0] = 64;", "workspace[0] = ~size_t{0};", "asks for the impossible workspace"),
        (
            "workspace[0] = 64;",
            "workspace[0] = 64; context->GetRawTilingData()->SetDataSize(1 << 20);",
            "size of its tiling data to 1048576 bytes",
        ),
        (
            "*context->GetOutputShape(0) = *context->GetInputShape(0);",
            "*context->GetOutputShape(0) = gert::Shape{-1, 2};",
            'leaves the shape of output "y" open, (-1, 2)',
        ),
        (
            "context->SetOutputDataType(0, context->GetInputDataType(0));",
            "context->SetOutputDataType(0, ge::DT_INT8);",
            "gives float32, absent -> int8; its OpDef lists",
        ),
        (
            'this->Input("z").ParamType(OPTIONAL).DataType({ge::DT_FLOAT, ge::DT_INT32})',
            'this->Input("z").ParamType(OPTIONAL).DataType({ge::DT_FLOAT})',
            "x lists 2 types and z lists 1",
        ),
        (
            'this->Input("z").ParamType(OPTIONAL)',
            'this->Input("z").ParamType(DYNAMIC)',
            'needs at least one tensor in its input "z"',
        ),
        (
            'Attr("scale").AttrType(OPTIONAL).Float(2.0)',
            'Attr("scale").Float()',
            "needs its attribute",
        ),
    ],
)
def test_a_wrong_host_function_is_named(build_artifact, host_text, old, new, message) -> None:
    folder = build_artifact(changed(host_text, old, new))
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        runtime.open(folder).run("ScaleAdd", [X])
    # No core at all is how an operator says that it takes no such shapes.
    assert isinstance(caught.value, HostRefusal) == (message == "block dim to 0")


@pytest.mark.parametrize("missing", ["GetInputShape(2)", "GetAttrs()->GetInt(1)"])
def test_an_inference_that_looks_for_what_its_operator_has_not_leaves_the_shape_to_the_caller(
    build_artifact, host_text, missing
) -> None:
    # Each such call was refused, though on the chip the tensors that are passed decide.
    infer = "*context->GetOutputShape(0) = *context->GetInputShape(0);"
    fails = f"{infer} if (context->{missing} == nullptr) return ge::GRAPH_FAILED;"
    library = runtime.open(build_artifact(changed(host_text, infer, fails)))
    with pytest.raises(HostRefusal, match=r"InferShape .* does not list: give its shape with"):
        library.run("ScaleAdd", [X])
    (y,) = library.run("ScaleAdd", [X], out_shape=(3, 4))
    np.testing.assert_array_equal(y, 2 * X)


def test_an_inference_that_refuses_what_it_is_given_is_heard_whatever_the_caller_has(
    build_artifact, host_text
) -> None:
    infer = "*context->GetOutputShape(0) = *context->GetInputShape(0);"
    fails = f"{infer} if (context->GetInputShape(1) == nullptr) return ge::GRAPH_FAILED;"
    # What else asks past the last input, such as the other inference, makes no difference.
    types = "context->SetOutputDataType(0, context->GetInputDataType(0));"
    asks = f"{types} if (context->GetInputDataType(2) != ge::DT_UNDEFINED) return ge::GRAPH_FAILED;"
    host = changed(changed(host_text, infer, fails), types, asks)
    library = runtime.open(build_artifact(host))
    with pytest.raises(HostRefusal, match="its InferShape function failed;"):
        library.run("ScaleAdd", [X], out_shape=(3, 4))
    (y,) = library.run("ScaleAdd", [X, X])
    np.testing.assert_array_equal(y, 3 * X)


def test_without_inference_the_callers_type_chooses_among_combinations_of_the_same_inputs(
    build_artifact, host_text
) -> None:
    # The first one with these inputs ran whatever the caller asked for, and told its own type.
    host = changed(host_text, ".SetInferDataType(ge::InferDataType)", "")
    host = changed(
        host, "static graphStatus InferDataType(", "[[maybe_unused]] graphStatus Unused("
    )
    inputs = ".DataType({ge::DT_FLOAT, ge::DT_INT32})\n        .Format"
    host = changed(host, inputs, inputs.replace("DT_INT32", "DT_FLOAT"))
    library = runtime.open(build_artifact(host))
    assert library.infer("ScaleAdd", [X]) == [runtime.OutputSpec((3, 4), "float32")]
    found = library.infer("ScaleAdd", [X], out_dtype=["int32"])
    assert found == [runtime.OutputSpec((3, 4), "int32")]
    # No combination of these inputs has this one.
    found = library.infer("ScaleAdd", [X], out_dtype=["float16"])
    assert found == [runtime.OutputSpec((3, 4), "float32")]


# What TilingFunc does for a scale, and what is said of it. The crashes used to end the process.
CRASHES = {
    100: ("*(volatile int*)8 = 1;", "its tiling function reads or writes memory through a pointer"),
    101: ("volatile int zero = 0; volatile int r = 7 / zero; (void)r;", "divides an integer by"),
    102: ("endless(1);", "its stack overflowed"),
    103: ("abort();", "its tiling function aborts"),
    104: ("throw 5;", "its tiling function throws int"),
    105: ('OP_LOGE(context, "at 105"); __builtin_trap();', "at 105"),
}


@pytest.fixture(scope="module")
def crashing_host(build_artifact, host_text) -> Path:
    cases = "".join(
        f"if (tiling->scale == {scale}) {{ {body} }}\n" for scale, (body, _) in CRASHES.items()
    )
    text = changed(host_text, "if (tiling->scale < 0) {", cases + "if (tiling->scale < 0) {")
    endless = "static int endless(volatile int n) { return n < 0 ? n : endless(n) + 1; }\n"
    return build_artifact(
        changed(
            text, "namespace optiling {", "#include <cstdlib>\n" + endless + "namespace optiling {"
        )
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", CRASHES)
def test_a_crash_of_a_host_function_is_an_error(crashing_host, scale) -> None:
    library = runtime.open(crashing_host)
    for _ in range(2):
        with pytest.raises(KernelFault, match=re.escape(CRASHES[scale][1])) as caught:
            library.run("ScaleAdd", [X], {"scale": float(scale)})
        assert caught.value.category == "Crash"
    np.testing.assert_array_equal(library.run("ScaleAdd", [X])[0], 2 * X)


def test_handlers_that_others_install_later_get_their_own_crashes_only(crashing_host) -> None:
    text = f"""
    import ctypes, faulthandler, sys
    import numpy as np
    from opkit import runtime
    library = runtime.open({str(crashing_host)!r})
    faulthandler.disable()
    library.run("ScaleAdd", [np.ones(1, np.float32)])
    faulthandler.enable()
    try:
        library.run("ScaleAdd", [np.ones(1, np.float32)], {{"scale": 100.0}})
    except Exception as error:
        print(error)
    sys.stdout.flush()
    ctypes.string_at(8)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        cwd=crashing_host,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "its tiling function reads or writes memory" in done.stdout
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert done.returncode == -signal.SIGSEGV


def test_an_output_that_no_memory_holds_is_an_error(build_artifact, host_text) -> None:
    # It used to be reported as a bug of opkit.
    old = "*context->GetOutputShape(0) = *context->GetInputShape(0);"
    new = "*context->GetOutputShape(0) = gert::Shape{1 << 23, 1 << 24};"
    library = runtime.open(build_artifact(changed(host_text, old, new), variants={}))
    with pytest.raises(SetupError, match="no memory for an output of shape"):
        library.run("ScaleAdd", [X])


def test_a_kernel_with_other_parameters_is_refused(build_artifact, kernel_text) -> None:
    fewer = changed(kernel_text, "uint8_t* workspace, uint8_t* tiling", "uint8_t* tiling")
    fewer = changed(fewer, "workspace[i % 64] = 1;", "")
    with pytest.raises(UsageError, match="has 4 parameters; it is called with 5: 2 inputs, 1 outp"):
        runtime.open(build_artifact(kernel=fewer)).run("ScaleAdd", [X])


def test_a_folder_that_was_built_again_is_opened_again(build_artifact, host_text) -> None:
    folder = build_artifact()
    assert runtime.open(folder).run("ScaleAdd", [X])[0][0, 1] == 2
    build_artifact(changed(host_text, "Float(2.0)", "Float(5.0)"), variants={}, folder=folder)
    assert runtime.open(folder).run("ScaleAdd", [X])[0][0, 1] == 5


def test_a_kernel_that_was_built_again_is_loaded_again(build_artifact, kernel_text) -> None:
    variants = {"scale_add.dav-2201.float32-float32-float32.so": "float"}
    folder = build_artifact(variants=variants)
    assert runtime.open(folder).run("ScaleAdd", [X])[0][0, 1] == 2
    host = (folder / "libop_host.so").stat()
    other = build_artifact(
        kernel=changed(kernel_text, "in[i] * data.scale", "in[i] * data.scale + 100"),
        variants=variants,
    )
    for name in (*variants, "manifest.json"):
        (other / name).replace(folder / name)
    assert (folder / "libop_host.so").stat() == host
    assert runtime.open(folder).run("ScaleAdd", [X])[0][0, 1] == 102


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"opkit": "0.0.9", "abi_version": 1}, "was built by opkit 0.0.9"),
        ({"opkit": None, "abi_version": 0}, "was built for kernel ABI 0"),
        ({"opkit": None}, "cannot be read"),
    ],
)
def test_an_artifact_of_another_opkit_is_refused(tmp_path, manifest, message) -> None:
    import opkit

    (tmp_path / "manifest.json").write_text(
        json.dumps(
            {
                key: value or opkit.__version__ if key == "opkit" else value
                for key, value in manifest.items()
            }
        )
    )
    with pytest.raises(SetupError, match=message) as caught:
        runtime.open(tmp_path)
    assert "opkit build" in str(caught.value)


def test_a_folder_that_is_no_artifact_is_refused(tmp_path) -> None:
    with pytest.raises(SetupError, match=r"holds no manifest\.json"):
        runtime.open(tmp_path)


def test_statuses_become_exceptions(scale_add) -> None:
    runtime.raise_status(0, "")
    with pytest.raises(UsageError, match="because"):
        runtime.raise_status(2, "because")
    with pytest.raises(SetupError, match="because"):
        runtime.raise_status(3, "because")


def test_tensors_have_the_layout_that_data_format_says(build_artifact, host_text) -> None:
    # They were ND, which host code of pools refuses: only their layout says which axis is which.
    inferred = "*context->GetOutputShape(0) = *context->GetInputShape(0);"
    told = "\n  context->GetOutputShape(0)->SetDim(0, context->GetInputDesc(0)->GetOriginFormat());"
    attribute = 'this->Attr("scale").AttrType(OPTIONAL).Float(2.0);'
    layout = '\n    this->Attr("data_format").AttrType(OPTIONAL).String("NDHWC");'
    text = changed(host_text, inferred, inferred + told)
    text = changed(text, attribute, attribute + layout)
    library = runtime.open(build_artifact(text, variants={}))
    volume, matrix = np.zeros((1, 2, 3, 4, 5), np.float32), np.zeros((1, 2), np.float32)
    numbers = {"NDHWC": 27, "NCDHW": 30}
    for name, number in numbers.items():
        (found,) = library.infer("ScaleAdd", [volume], {"data_format": name})
        assert found.shape[0] == number
    # Of another number of axes, or of no layout that there is: any.
    (found,) = library.infer("ScaleAdd", [matrix])
    assert found.shape[0] == 2
    (found,) = library.infer("ScaleAdd", [volume], {"data_format": "other"})
    assert found.shape[0] == 2
