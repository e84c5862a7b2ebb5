"""Every documented call form of every instruction compiles with every data type that the table gives it.

One translation unit a chip. The forms are the signatures on the pages of the Ascend C API.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.chips import all_chips
from opkit.dtypes import DTYPES
from opkit.toolchain import find_compiler

from .architectures import cast_rows

_emulator = pytest.importorskip("opkit.emulator._emulator")

ARCHITECTURES = {chip.npu_arch: chip.npu_arch_number for chip in all_chips()}

PROLOGUE = """
#include "kernel_operator.h"
using namespace AscendC;
uint64_t bits[2];
uint64_t mask;
int32_t length;
UnaryRepeatParams one;
BinaryRepeatParams two;
template <typename T> LocalTensor<T> tensor() { return LocalTensor<T>(TPosition::VECCALC, 0, 1024); }
"""
FUNCTION = """
void form_%(index)d() {
  using T = %(type)s;
  LocalTensor<T> a = tensor<T>(), b = tensor<T>(), c = tensor<T>(), work = tensor<T>();
  GlobalTensor<T> gm;
  LocalTensor<uint8_t> bytes = tensor<uint8_t>();
  LocalTensor<uint16_t> shorts = tensor<uint16_t>();
  LocalTensor<uint32_t> words = tensor<uint32_t>();
  T s = static_cast<T>(1);
  (void)s;
  %(call)s
}
"""

UNARY = """
  NAME(c, a, length);
  NAME(c, a, bits, 1, one);
  NAME(c, a, mask, 1, one);
  NAME(c, a, 64, 1, {1, 1, 8, 8});
  NAME<T, false>(c, a, MASK_PLACEHOLDER, 1, one);
"""
BINARY = """
  NAME(c, a, b, length);
  NAME(c, a, b, bits, 1, two);
  NAME(c, a, b, mask, 1, two);
  NAME(c, a, b, 64, 1, {1, 1, 1, 8, 8, 8});
  NAME<T, false>(c, a, b, MASK_PLACEHOLDER, 1, two);
"""
SCALAR = """
  NAME(c, a, s, length);
  NAME(c, a, s, bits, 1, one);
  NAME(c, a, s, mask, 1, one);
  NAME(c, a, s, 64, 1, {1, 1, 8, 8});
  NAME<T, false>(c, a, s, MASK_PLACEHOLDER, 1, one);
  NAME<T, false>(c, a, s, length);
  NAME<T>(c, a, 1, length);
"""
SCALAR_TYPED = """
  NAME<T, T>(c, a, s, length);
  NAME<T, T, false>(c, a, s, length);
  NAME<T, T>(c, a, s, bits, 1, one);
  NAME<T, T, false>(c, a, s, MASK_PLACEHOLDER, 1, one);
"""
WIDENING = {
    "MulAddDst": """
  LocalTensor<half> low = tensor<half>();
  NAME(c, low, low, length);
  NAME(c, low, low, bits, 1, two);
  NAME<float, half, false>(c, low, low, MASK_PLACEHOLDER, 1, two);
""",
    "Axpy": """
  LocalTensor<half> low = tensor<half>();
  NAME(c, low, half(1), length);
  NAME(c, low, half(1), bits, 1, one);
  NAME<float, half, false>(c, low, half(1), MASK_PLACEHOLDER, 1, one);
""",
}
OPERATORS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "And": "&", "Or": "|"}

COMPARE = """
  NAME(bytes, a, OTHER, CMPMODE::EQ, 256);
  NAME(bytes, a, OTHER, CMPMODE::EQ, bits, 1, PARAMS);
  NAME(bytes, a, OTHER, CMPMODE::EQ, mask, 1, PARAMS);
  NAME<T, uint8_t, false>(bytes, a, OTHER, CMPMODE::EQ, MASK_PLACEHOLDER, 1, PARAMS);
  NAME(bytes.ReinterpretCast<int8_t>(), a, OTHER, CMPMODE::EQ, 256);
  NAME(c, a, OTHER, CMPMODE::EQ, 256);
"""
REDUCE = """
  NAME(c, a, work, length INDEX);
  NAME<T>(c, a, work, length INDEX);
  NAME(c, a, work, bits, 1, 8 INDEX);
  NAME(c, a, work, 64, 1, 8 INDEX);
"""
WHOLE = """
  NAME(c, a, bits, 1, 1, 1, 8);
  NAME(c, a, 64, 1, 1, 1, 8);
  NAME<T, false>(c, a, MASK_PLACEHOLDER, 1, 1, 1, 8);
  ReduceRepeat<ReduceType::KIND>(c, a, bits, 1, 1, 1, 8);
  ReduceRepeat<ReduceType::KIND>(c, a, 64, 1, 1, 1, 8);
  ReduceRepeat<ReduceType::KIND, T, T, false>(c, a, MASK_PLACEHOLDER, 1, 1, 1, 8);
"""
WHOLE_EXTREME = """
  NAME(c, a, 64, 1, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE);
  ReduceRepeat<ReduceType::KIND>(c, a, 64, 1, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE);
"""
BLOCK = """
  NAME(c, a, 1, bits, 1, 1, 8);
  NAME(c, a, 1, 64, 1, 1, 8);
  NAME<T, false>(c, a, 1, MASK_PLACEHOLDER, 1, 1, 8);
  ReduceDataBlock<ReduceType::KIND>(c, a, bits, 1, 1, 1, 8);
  ReduceDataBlock<ReduceType::KIND>(c, a, 64, 1, 1, 1, 8);
  ReduceDataBlock<ReduceType::KIND, T, T, false>(c, a, MASK_PLACEHOLDER, 1, 1, 1, 8);
"""
FUSED = """
  NAME(tensor<TO>(), a, b, length);
  NAME(tensor<TO>(), a, b, bits, 1, two);
  NAME(tensor<TO>(), a, b, mask, 1, two);
  NAME<TO, T, false>(tensor<TO>(), a, b, MASK_PLACEHOLDER, 1, two);
"""
FILL = """
  NAME(c, s, length);
  NAME<T>(c, 1, length);
  NAME(c, s, bits, 1, 1, 8);
  NAME(c, s, mask, 1, 1, 8);
  NAME<T, false>(c, s, MASK_PLACEHOLDER, 1, 1, 8);
"""
GATHERING = """
  NAME(c, a, words, 0, length);
  NAME(c, a, words, 0, bits, 1, 8);
  NAME(c, a, words, 0, mask, 1, 8);
"""
CONVERTED = {"F16": "int8_t", "S16": "int8_t", "F32": "half", "S32": "half"}
"""What the fused conversions make of each type."""

SPECIAL = {
    "Compare": COMPARE.replace("OTHER", "b").replace("PARAMS", "two") + "  bytes = a < b;\n",
    "CompareScalar": COMPARE.replace("OTHER", "s").replace("PARAMS", "one")
    + COMPARE.replace("OTHER", "s").replace("PARAMS", "one").replace("NAME", "Compares"),
    "CompareRegister": """
  Compare(a, b, CMPMODE::LT, bits, two);
  Compare(a, b, CMPMODE::LT, mask, two);
  Compare<T, false>(a, b, CMPMODE::LT, MASK_PLACEHOLDER, two);
""",
    "GetCmpMask": "GetCmpMask(c);",
    "SetCmpMask": "SetCmpMask(c);",
    "Select": """
  Select(c, bytes, a, s, SELMODE::VSEL_TENSOR_SCALAR_MODE, length);
  Select(c, bytes, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, length);
  Select(c, b, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, length);
  Select(c, bytes, a, s, SELMODE::VSEL_TENSOR_SCALAR_MODE, bits, 1, two);
  Select(c, bytes, a, s, SELMODE::VSEL_TENSOR_SCALAR_MODE, mask, 1, two);
  Select(c, bytes, a, b, SELMODE::VSEL_CMPMASK_SPR, bits, 1, two);
  Select(c, bytes, a, b, SELMODE::VSEL_CMPMASK_SPR, mask, 1, two);
  Select<T, uint8_t, false>(c, bytes, a, b, SELMODE::VSEL_CMPMASK_SPR, MASK_PLACEHOLDER, 1, two);
  Select<T, uint8_t>(c, bytes, a, 1, two);
  Select<T, SELMODE::VSEL_CMPMASK_SPR>(c, a, b, 1, two);
""",
    "Duplicate": FILL,
    "CreateVecIndex": FILL,
    "Brcb": "Brcb(c, a, 1, {1, 8});",
    "Copy": """
  Copy(c, a, bits, 1, {1, 1, 8, 8});
  Copy(c, a, mask, 1, {1, 1, 8, 8});
  Copy<T, false>(c, a, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
""",
    "ReduceSum": REDUCE.replace(" INDEX", ""),
    "ReduceMax": REDUCE.replace(" INDEX", "") + REDUCE.replace("INDEX", ", true"),
    "ReduceMin": REDUCE.replace(" INDEX", "") + REDUCE.replace("INDEX", ", true"),
    "WholeReduceSum": WHOLE.replace("KIND", "SUM") + "RepeatReduceSum(c, a, 1, 64, 0, 1, 1, 8);",
    "WholeReduceMax": (WHOLE + WHOLE_EXTREME).replace("KIND", "MAX"),
    "WholeReduceMin": (WHOLE + WHOLE_EXTREME).replace("KIND", "MIN"),
    "BlockReduceSum": BLOCK.replace("KIND", "SUM"),
    "BlockReduceMax": BLOCK.replace("KIND", "MAX"),
    "BlockReduceMin": BLOCK.replace("KIND", "MIN"),
    "PairReduceSum": BLOCK.replace("KIND", "SUM").replace("ReduceDataBlock", "ReducePairElem"),
    "Gather": GATHERING,
    "Scatter": GATHERING,
    "Gatherb": "Gatherb(c, a, words, 1, {1, 8});",
    "GatherMask": """
  uint64_t kept = 0;
  GatherMask(c, a, 1, false, 0, {1, 1, 8, 0}, kept);
  GatherMask(c, a, PATTERN, true, 64, {1, 1, 8, 8}, kept);
""",
    "TransDataTo5HD": """
  uint64_t addresses[16] = {};
  LocalTensor<T> tensors[16];
  LocalTensor<uint64_t> lists = tensor<uint64_t>();
  TransDataTo5HD<T>(addresses, addresses, {false, false, 1, 0, 0});
  TransDataTo5HD<T>(lists, lists, {false, false, 1, 0, 0});
  TransDataTo5HD<T>(tensors, tensors, {false, false, 1, 0, 0});
""",
    "Transpose": "Transpose(c, a, bytes, {1, 8, 8, 8, TransposeType::TRANSPOSE_NCHW2NHWC});",
    "Sort32": "Sort32(c, a, words, 1); Sort<T, true>(c, a, words, work, 1); "
    "Extract(c, words, a, 1); Concat(c, a, work, 1);",
    "MrgSort": """
  const uint16_t lengths[4] = {32, 32, 0, 0};
  uint32_t taken[4];
  MrgSort(c, MrgSortSrcList<T>(a, b, a, b), MrgSort4Info(lengths, false, 3, 1));
  MrgSort<T, true>(c, MrgSortSrcList<T>(a, b, a, b), lengths, taken, 3, 1);
""",
    "RpSort16": "RpSort16(c, a, 1);",
    "MrgSort4": """
  const uint16_t lengths[4] = {16, 16, 0, 0};
  MrgSort4(c, MrgSortSrcList<T>(a, b, a, b), MrgSort4Info(lengths, false, 3, 1));
""",
    "ProposalConcat": "ProposalConcat(c, a, 1, 4);",
    "ProposalExtract": "ProposalExtract(c, a, 1, 4);",
    "AddReluCast": FUSED,
    "SubReluCast": FUSED,
    "MulCast": FUSED + FUSED.replace("TO", "uint8_t"),
    "AddDeqRelu": FUSED
    + "AddDeqRelu(tensor<half>(), a, b, mask, 1, two);"
    + "AddDeqRelu<false>(tensor<half>(), a, b, MASK_PLACEHOLDER, 1, two);",
    "CastDequant": """
  CastDequant(tensor<TO>(), a, length);
  CastDequant<TO, T, false, false>(tensor<TO>(), a, length);
  CastDequant(tensor<TO>(), a, bits, 1, one);
  CastDequant<TO, T, true, false, false>(tensor<TO>(), a, 64, 1, one);
""",
    "VectorPadding": """
  VectorPadding(c, a, 1, true, length);
  VectorPadding(c, a, 1, true, bits, 1, one);
  VectorPadding(c, a, 1, true, mask, 1, one);
  VectorPadding<T, false>(c, a, 1, true, MASK_PLACEHOLDER, 1, one);
""",
    "DataCopy": """
  DataCopy(a, gm, 64);
  DataCopy(gm, a, 64);
  DataCopy(c, a, 64);
  DataCopy(a, gm, {1, 1, 0, 0});
  DataCopy(gm, a, {1, 1, 0, 0});
  DataCopy(c, a, {1, 1, 0, 0});
  const SliceInfo slices[1] = {{0, 7, 0, 1, 8}};
  DataCopy(a, gm, slices, slices, 1);
  DataCopy(gm, a, slices, slices, 1);
""",
    "DataCopyPad": """
  DataCopyPad(a, gm, DataCopyExtParams{1, 8, 0, 0, 0}, DataCopyPadExtParams<T>{true, 0, 0, 0});
  DataCopyPad(gm, a, DataCopyExtParams{1, 8, 0, 0, 0});
  DataCopyPad(a, gm, DataCopyParams{1, 8, 0, 0}, DataCopyPadParams{true, 0, 0, 0});
  DataCopyPad(gm, a, DataCopyParams{1, 8, 0, 0});
  SetPadValue(s);
  SetPadValue<T, TPosition::VECIN>(s);
""",
    "DataCopyNd2Nz": "DataCopy(a, gm, Nd2NzParams{1, 8, 16, 0, 16, 8, 1, 0});",
    "DataCopyNz2Nd": "DataCopy(gm, a, Nz2NdParamsFull{1, 32, 32, 1, 32, 32, 1});",
    "InitOutput": "InitOutput<T>(gm, 64, s); Fill<T>(gm, 64, s);",
}
FORMS_OF_FAMILIES = {"vec_unary": UNARY, "vec_binary": BINARY, "vec_binary_scalar": SCALAR}
OF_ROWS = ("vec_special", "data_copy")
"""Families whose rows have forms of their own, in SPECIAL."""
ELSEWHERE = {"Cast"}
"""Its pairs of types are tested below."""
KERNEL_TYPES = {row.code: row.kernel for row in DTYPES}
NARROWED = {
    "DataCopyNz2Nd": {"F16", "BF16", "S16", "U16", "F32", "S32", "U32"},
    "DataCopyPad": {row.code for row in DTYPES} - {"BOOL"},
}
"""Rows that accept ANY type in the table, and the types that their pages list."""


def forms_of(row: dict[str, object], code: str) -> str:
    name, family = str(row["name"]), str(row["family"])
    text = FORMS_OF_FAMILIES.get(family) or SPECIAL[name]
    if name in OPERATORS:
        text += f"  c = a {OPERATORS[name]} b;\n"
    if family == "vec_binary_scalar":
        text += SCALAR_TYPED
    if name in WIDENING and code == "F32":
        text += WIDENING[name]
    if name == "Axpy":  # this one form is not documented for it
        text = text.replace("  NAME<T, T, false>(c, a, s, length);\n", "")
    if name == "ShiftRight":
        text += "  ShiftRight(c, a, s, mask, 1, one, true);\n"
        text += "  ShiftRight<T, T>(c, a, s, bits, 1, one, true);\n"
    text = text.replace("NAME", name).replace("TO", CONVERTED.get(code, "int8_t"))
    wide = KERNEL_TYPES[code] in ("float", "int32_t", "uint32_t")
    return text.replace("PATTERN", "words" if wide else "shorts")


def text_for(arch: str) -> tuple[str, dict[int, str]]:
    """Return a translation unit, and what stands at which of its lines."""
    lines = PROLOGUE.splitlines()
    places: dict[int, str] = {}
    index = 0
    for row in _emulator.isa_table():
        if row["family"] not in (*OF_ROWS, *FORMS_OF_FAMILIES) or row["name"] in ELSEWHERE:
            continue
        for code in row["dtypes"].get(arch, []):
            if code not in KERNEL_TYPES or code not in NARROWED.get(row["name"], {code}):
                continue
            call = forms_of(row, code)
            index += 1
            values = {"index": index, "type": KERNEL_TYPES[code], "call": call}
            for line in (FUNCTION % values).splitlines():
                lines.append(line)
                places[len(lines)] = f"{row['name']} with {KERNEL_TYPES[code]}: {line.strip()}"
    return "\n".join(lines) + "\n", places


def errors_of(tmp_path: Path, arch: str, text: str) -> list[tuple[int, str]]:
    source = tmp_path / "forms.cpp"
    source.write_text(text)
    command = [
        *(*find_compiler().argv, "-std=c++17", "-fsyntax-only", "-fmax-errors=0"),
        *(f"-D__NPU_ARCH__={ARCHITECTURES[arch]}", "-isystem", str(emulator.include_dir())),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"forms\.cpp:(\d+):\d+: +(?:error: |required from here)(.*)", done.stderr)
    assert found or done.returncode == 0, done.stderr
    return [(int(line), message) for line, message in found]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_call_form_compiles_with_every_type(tmp_path: Path, arch: str) -> None:
    text, places = text_for(arch)
    wrong = errors_of(tmp_path, arch, text)
    assert [f"{places.get(line, line)} {message}" for line, message in wrong] == []


def test_every_row_has_its_forms() -> None:
    names = {row["name"] for row in _emulator.isa_table() if row["family"] in OF_ROWS}
    assert names == {*SPECIAL, *ELSEWHERE}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_cast_compiles_with_every_pair_of_types(tmp_path: Path, arch: str) -> None:
    types = {**KERNEL_TYPES, "S4": "int4b_t"}
    rows = [*cast_rows(arch)]
    assert len(rows) > 10
    calls = []
    for source, destination, _ in rows:
        to, of = types[destination], types[source]
        operands = f"tensor<{to}>(), tensor<{of}>(), RoundMode::CAST_NONE"
        calls += [
            f"Cast({operands}, 64);",
            f"Cast({operands}, bits, 1, one);",
            f"Cast({operands}, mask, 1, one);",
            f"Cast<{to}, {of}, false>({operands}, MASK_PLACEHOLDER, 1, one);",
        ]
    text = PROLOGUE + "void casts() {\n" + "\n".join(calls) + "\n}\n"
    assert errors_of(tmp_path, arch, text) == []


def test_a_type_that_no_row_accepts_would_be_found(tmp_path: Path) -> None:
    call = {"index": 1, "type": "int32_t", "call": UNARY.replace("NAME", "Exp")}
    wrong = errors_of(tmp_path, "dav-2201", PROLOGUE + FUNCTION % call)
    assert len(wrong) >= 4
