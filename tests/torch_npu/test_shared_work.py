"""Work that one core did and several share: folds to few numbers, elements by number, widths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opkit.profiling import Profile
from opkit.sanitizer import Check

torch = pytest.importorskip("torch")

ORDERS = [1, 2, 3.5, float("inf"), -float("inf")]


def cores_of(function: Callable[[], Any]) -> list[int]:
    """Return the cores of each launch."""
    with Profile(event_limit=0) as session:
        function()
    return [len(timeline.cores) for timeline in session.timelines]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_norm_of_a_line_is_shared_by_cores(order: float, dtype: Any) -> None:
    # One core went along the whole line: 135 us for 1 Mi elements, which 20 cores have in 13.
    given = (torch.randn(2, 400009) * 0.05 + 0.1).to(dtype)
    here = given.npu()
    found = torch.linalg.vector_norm(here, order, dim=1)
    expected = torch.linalg.vector_norm(given.double(), order, dim=1)
    limit = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    torch.testing.assert_close(found.cpu().double(), expected, rtol=limit, atol=0)
    (cores,) = cores_of(lambda: torch.linalg.vector_norm(here, order, dim=1))
    assert cores > 2


def test_parts_see_nan_layouts_and_several_folded_dims() -> None:
    given = torch.randn(3, 5, 20011)
    given[1, 2, 20010] = float("nan")
    for of in (given, given.transpose(0, 1), given[:, ::2, 1:]):
        for function in (lambda x: x.sum((1, 2)), lambda x: x.mean(), lambda x: x.amax((0, 2))):
            found, expected = function(of.npu()).cpu(), function(of.double())
            torch.testing.assert_close(
                found.double(), expected, rtol=1e-4, atol=1e-2, equal_nan=True
            )


@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_lines_of_a_list_have_cores_by_their_length(order: float) -> None:
    # A line was one core's, however long.
    values = [torch.randn(900001), torch.randn(1), torch.randn(301, 1000), torch.randn(7)]
    here = [x.npu() for x in values]
    found = torch._foreach_norm(here, order)
    expected = torch._foreach_norm([x.double() for x in values], order)
    torch.testing.assert_close([x.cpu().double() for x in found], expected, rtol=1e-5, atol=0)
    (cores,) = cores_of(lambda: torch._foreach_norm(here, order))
    assert cores > len(values)


def test_parts_meet_without_a_race() -> None:
    given = torch.randn(50021).npu()
    with Check(()) as checks:
        torch.linalg.vector_norm(given)
        torch._foreach_norm([given, given[:9001]])
        given.gather(0, torch.arange(0, 50021, 49).npu())
        torch.arange(3000).npu().int().long()
    assert not checks.findings


@pytest.mark.parametrize("count", [1, 7, 4096, 70001])
def test_widths_of_whole_numbers_change_on_the_vector_unit(count: int) -> None:
    # The scalar unit took one at a time, 14 us for a thousand; the CPU more than 65536.
    torch.npu.reset_fallbacks()
    wide = torch.randint(-(2**62), 2**62, (count, 3))
    wide.view(-1)[:3] = torch.tensor([2**31, -(2**31) - 1, -1])
    for given in (wide, wide.t(), wide[:, ::2], wide[:0]):
        assert torch.equal(given.npu().int().cpu(), given.int())
        narrow = given.int()
        assert torch.equal(narrow.npu().long().cpu(), narrow.long())
    target = torch.zeros(count, 6, dtype=torch.int64)
    there = target.npu()
    there[:, 1::2].copy_(wide.int().npu())
    target[:, 1::2].copy_(wide.int())
    assert torch.equal(there.cpu(), target)
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16], ids=str)
def test_narrow_whole_numbers_become_wide_ones_of_any_count(kind: Any) -> None:
    # More than 65536 were the CPU's.
    limits = torch.iinfo(kind)
    given = torch.randint(limits.min, limits.max + 1, (70001,)).to(kind)
    torch.npu.reset_fallbacks()
    for wider in (torch.int16, torch.int32, torch.int64):
        if torch.iinfo(wider).bits > limits.bits:
            assert torch.equal(given.npu().to(wider).cpu(), given.to(wider))
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool], ids=str)
def test_single_elements_by_number_are_shared_by_cores(dtype: Any) -> None:
    # Rows of one element, and a single row, were few cores': 21 us for a thousand elements.
    table = (torch.randn(1009, 6) * 3).to(dtype)
    places = torch.randint(0, 6, (1009, 1))
    line, numbers = table.reshape(-1), torch.randint(0, 6 * 1009, (1009,))
    here = [x.npu() for x in (table, places, line, numbers)]
    assert torch.equal(here[0].gather(1, here[1]).cpu(), table.gather(1, places))
    assert torch.equal(here[2].take(here[3]).cpu(), line.take(numbers))
    (cores,) = cores_of(lambda: here[0].gather(1, here[1]))
    assert cores > 8


def test_indices_of_two_types_and_expanded_ones_stay_on_the_device() -> None:
    # Two types were the CPU's, and each expanded index was copied as large as the result.
    table = torch.randn(2, 30, 9, 11)
    first = torch.tensor([0, 1, 0])[:, None, None]
    rows = torch.randint(-9, 9, (3, 1, 6), dtype=torch.int32)
    columns = torch.randint(0, 11, (40, 6))
    here = [x.npu() for x in (table, first, rows, columns)]
    torch.npu.reset_fallbacks()
    found = here[0][here[1], :, here[2], here[3]]
    assert torch.equal(found.cpu(), table[first, :, rows, columns])
    # The last index is as wide as the result; the others are seen so.
    expanded = here[0][here[1].expand(3, 40, 6), :, here[2].expand(3, 40, 6), here[3]]
    assert torch.equal(expanded.cpu(), found.cpu())
    assert torch.equal(here[0][torch.zeros(0, dtype=torch.int64).npu()].cpu(), table[:0])
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
    # A type's conversion and the elements themselves.
    assert len(cores_of(lambda: here[0][here[1], :, here[2], here[3]])) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_an_index_beyond_the_table_is_still_an_error(dtype: Any) -> None:
    table = torch.randn(4, 5).to(dtype).npu()
    with pytest.raises(IndexError, match="out of bounds"):
        table[torch.tensor([1, 4]).npu(), torch.tensor([0], dtype=torch.int32).npu()]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32], ids=str
)
@pytest.mark.parametrize("places", [1, 7, 32, 33])
def test_puts_to_few_places_are_masks(dtype: Any, places: int) -> None:
    # The scalar unit put one element after another: 151 us for half a million to seven places.
    def numbers(rows: int) -> Any:
        found = torch.rand(2, places, 251).argsort(1)[:, :rows]
        return found.to(torch.int64)

    index = numbers(min(places, 4))
    table, source = torch.randn(2, places, 251) * 9, torch.randn(index.shape) * 9
    table[0, 0, :5] = float("nan")
    source[1, 0, ::7] = -0.0
    table, source = (
        torch.nan_to_num(x).to(dtype) if dtype == torch.int32 else x.to(dtype)
        for x in (table, source)
    )
    torch.npu.reset_fallbacks()
    expected = table.scatter(1, index, source)
    # By bits: signs of zero and NaN are moved as they are.
    for given in (index, index.int()):
        found = table.npu().scatter(1, given.npu().long(), source.npu()).cpu()
        assert found.view(torch.uint8).equal(expected.view(torch.uint8))
    # Of two elements for one place the later one stays, in order of the numbers.
    twice = torch.zeros(2, 5, 251, dtype=torch.int64)
    several = (torch.randn(2, 5, 251) * 9).to(dtype)
    last = table.npu().scatter(1, twice.npu(), several.npu()).cpu()
    assert torch.equal(last[:, 0], several[:, 4])
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())


def test_masks_have_no_race() -> None:
    table, index = torch.randn(2, 7, 3000).npu(), torch.randint(0, 7, (2, 4, 3000)).npu()
    source = torch.randn(2, 4, 3000).npu()
    with Check(()) as checks:
        table.scatter(1, index, source)
    assert not checks.findings
