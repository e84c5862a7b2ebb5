"""Text to image: what an image says of itself, what is compiled again, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import BuildError, UsageError
from opkit.toolchain import compile_kernel, open_image

PROLOGUE = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
KERNEL = 'extern "C" __global__ __aicore__ %s void kernel(GM_ADDR x, GM_ADDR tiling) { %s }\n'
NAMED = (
    "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY); KERNEL_TASK_TYPE(3, KERNEL_TYPE_MIX_AIC_1_2);"
)


@pytest.mark.parametrize(
    ("qualifier", "body", "mode"),
    [
        ("", "", "vector"),
        ("__vector__", "", "vector"),
        ("__cube__", "", "cube"),
        ("__mix__(1, 1)", "", "mix 1:1"),
        ("__mix__(1, 2)", "", "mix 1:2"),
        ("", NAMED, "cube"),
    ],
)
def test_the_compiled_object_says_which_cores_it_wants(
    tmp_path: Path, qualifier: str, body: str, mode: str
) -> None:
    # In a header: the source itself says nothing, and used to be taken for a vector kernel.
    (tmp_path / "kernel.h").write_text(PROLOGUE + KERNEL % (qualifier, body))
    source = tmp_path / "kernel.cpp"
    source.write_text('#include "kernel.h"\n')
    (kernel,) = compile_kernel(source, kernels=["kernel"], cache_dir=tmp_path / "cache").kernels
    assert (kernel.name, kernel.mode, kernel.argument_bytes) == ("kernel", mode, (8, 8))
    assert kernel.keyed_modes == (((3, "mix 1:2"),) if body else ())


def test_an_image_names_its_structs_of_tiling_data_and_its_tiling_keys(tmp_path: Path) -> None:
    text = "struct Own { uint64_t n; };\n" + KERNEL % (
        "",
        "GET_TILING_DATA_WITH_STRUCT(Own, data, tiling); constexpr int kOwn = 4;"
        " if (TILING_KEY_IS(7)) {} else if (TILING_KEY_LIST(kOwn, 1)) {}",
    )
    image = compile_kernel(PROLOGUE + text, cache_dir=tmp_path)
    (use,) = image.tiling_structs
    assert (use.function, use.name, use.size_bytes) == ("kernel", "Own", 8)
    # Nobody could say which branches of a kernel no case had taken.
    assert image.tiling_keys == (1, 4, 7)


def test_a_template_is_launched_by_its_instances(tmp_path: Path) -> None:
    text = PROLOGUE + (
        "namespace ns {"
        " template <typename T> __global__ __cube__ void twice(GM_ADDR x, T by) {}"
        " }\n"
    )
    image = compile_kernel(text, kernels=["ns::twice"], cache_dir=tmp_path)
    assert (image.kernels, image.templates) == ((), ("ns::twice",))
    with pytest.raises(UsageError, match="ns::twice is a template"):
        runtime.Kernel(image)
    image = compile_kernel(text, kernels=["ns::twice<uint16_t>"], cache_dir=tmp_path)
    (kernel,) = image.kernels
    assert (kernel.mode, kernel.argument_bytes) == ("cube", (8, 2))


def test_a_text_is_compiled_once_and_again_when_a_header_of_it_changes(tmp_path: Path) -> None:
    header = tmp_path / "size.h"
    header.write_text("constexpr float kBy = 2;\n")
    source = tmp_path / "scale.cpp"
    source.write_text(
        '#include "size.h"\n'
        + PROLOGUE
        + KERNEL % ("", "((__gm__ float*)x)[0] = kBy; (void)tiling;")
    )

    def compiled() -> tuple[bool, float]:
        image = compile_kernel(source, cache_dir=tmp_path / "cache")
        x = np.zeros(8, np.float32)
        runtime.Kernel(image).launch([x, None])
        return image.was_compiled, float(x[0])

    # The first result may not be kept: its header was written in this very tick of the clock.
    assert compiled()[1] == 2
    header.write_text("constexpr float kBy = 3;\n")
    assert compiled() == (True, 3)


def test_the_same_text_is_the_same_image(tmp_path: Path) -> None:
    text = PROLOGUE + KERNEL % ("", "(void)x;")
    first = compile_kernel(text, cache_dir=tmp_path)
    assert first.was_compiled
    assert compile_kernel(text, cache_dir=tmp_path) is first
    assert compile_kernel(text, cache_dir=tmp_path, options=["-DOTHER"]).was_compiled
    assert open_image(first.library).kernels == first.kernels


def test_errors_name_the_line_that_the_text_gives(tmp_path: Path) -> None:
    text = PROLOGUE + '#line 41 "model.py"\n' + KERNEL % ("", "missing(x);")
    with pytest.raises(BuildError, match=r"kernel.cpp does not compile: 1 error") as caught:
        compile_kernel(text, cache_dir=tmp_path)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.file.name, diagnostic.line) == ("model.py", 41)


def test_what_cannot_be_compiled_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="declares no kernel"):
        compile_kernel("void helper() {}", cache_dir=tmp_path)
    with pytest.raises(UsageError, match='"mixed" is no mode of a kernel: there is vector'):
        compile_kernel("", kernels=["kernel"], mode="mixed", cache_dir=tmp_path)


def test_generated_texts_are_compiled_without_what_is_beside_the_basic_api(tmp_path: Path) -> None:
    text = PROLOGUE + KERNEL % ("", "Tanh(LocalTensor<float>(), LocalTensor<float>(), 8);")
    compile_kernel(text, cache_dir=tmp_path)
    with pytest.raises(BuildError, match="1 error") as caught:
        compile_kernel(text, cache_dir=tmp_path, is_generated=True)
    assert "Tanh" in str(caught.value.diagnostics[0])


@pytest.mark.parametrize("header", ["", "#include <cmath>\n"])
def test_generated_texts_have_the_numbers_that_are_none(tmp_path: Path, header: str) -> None:
    text = header + PROLOGUE + KERNEL % ("", "reinterpret_cast<float*>(x)[0] = NAN + INFINITY;")
    assert compile_kernel(text, cache_dir=tmp_path, is_generated=True).log == ""
    assert compile_kernel(text + header, cache_dir=tmp_path, is_generated=True).log == ""
