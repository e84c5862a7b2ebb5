"""Inputs that belong together as no general rule says: shapes, values and attributes of operators.

Places along an axis, classes, what is sorted: what `opdef_cases` tries for operators of which only
the OpDef is known is refused by their references, or is nothing that they compute.
Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

import math

from opkit.testing.cases.cases import LIST_LENGTH, Shape
from opkit.testing.cases.permuting_cases import PERMUTING_CASES
from opkit.testing.cases.pooling_cases import POOLING_CASES
from opkit.testing.cases.quantising_cases import QUANTISING_CASES
from opkit.testing.cases.resizing_cases import RESIZING_CASES
from opkit.testing.cases.routing_cases import ROUTING_CASES
from opkit.testing.cases.together import (
    POSITIVE,
    PROBABILITY,
    Together,
    different,
    given,
    places_of,
    repeated,
    same_place,
)
from opkit.testing.cases.values import Source

__all__ = ["TOGETHER"]

_SCATTERED: tuple[Shape, ...] = ((5, 7), (17, 33), (9, 257))

# Host code may ask for a bias that the OpDef calls optional.
_PRODUCTS = tuple(
    Together(((rows, inner), (inner, columns), (columns,) if biased else None))
    for rows, inner, columns in ((1, 16, 32), (7, 33, 65), (97, 257, 131))
    for biased in (True, False)
)


def _boxes(count: int, step: int, *, by_column: bool = False) -> Source:
    """Left, upper, right and lower ends of boxes that overlap each other more or less."""
    boxes = []
    for place in range(count):
        left, upper = place * step % 17 / 2, place * 7 % 13 / 2
        boxes.append((left, upper, left + 1 + place % 5, upper + 2 + place % 3))
    lines = zip(*boxes, strict=True) if by_column else boxes
    return Source(values=tuple(end for line in lines for end in line))


TOGETHER: dict[str, tuple[Together, ...]] = {
    **PERMUTING_CASES,
    **POOLING_CASES,
    **QUANTISING_CASES,
    **RESIZING_CASES,
    **ROUTING_CASES,
    "ada_layer_norm_grad": tuple(
        Together(
            (
                *(whole, whole, (*whole[:-1], 1), (*whole[:-1], 1)),
                *((*whole[:-2], whole[-1]), whole[-1:], whole[-1:]),
            ),
            {},
            {"rstd": POSITIVE},
        )
        for whole in ((7, 33), (3, 5, 65), (2, 19, 1031))
    ),
    "amp_update_scale": tuple(
        Together(
            ((1,), (1,), (1,)),
            {"growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": interval},
            {"current_scale": POSITIVE, "growth_tracker": given(3), "found_inf": given(found)},
        )
        for interval, found in ((9, 0.0), (4, 0.0), (4, 1.0))
    ),
    "apply_top_k_top_p_with_sorted": tuple(
        Together(
            ((rows, columns), (rows, columns), (rows,), (rows,)),
            {},
            {
                "sorted_value": Source(
                    values=tuple(
                        8.0 * (column + 1) / columns - 4.0
                        for _ in range(rows)
                        for column in range(columns)
                    )
                ),
                "sorted_indices": Source(
                    values=tuple(
                        float((column * 7 + row) % columns)
                        for row in range(rows)
                        for column in range(columns)
                    )
                ),
                "p": PROBABILITY,
                "k": Source("uniform", 1.0, float(columns)),
            },
        )
        for rows, columns in ((1, 32), (5, 65), (3, 1031))
    ),
    "batch_normalization_grad": tuple(
        Together(
            (whole, whole, *[whole[1:2]] * 4),
            {},
            {"save_invstd": POSITIVE},
        )
        for whole in ((7, 33), (3, 5, 65), (2, 3, 17, 19))
    ),
    "bincount": tuple(
        Together(
            ((count,), (1,), (count,) if weighs else None),
            {},
            {"array": places_of(size), "size": given(size)},
        )
        for count, size in ((8, 5), (31, 33), (1031, 127))
        for weighs in (True, False)
    ),
    "cdist_grad": tuple(
        Together((whole,) * 4, {"p": power}, {"cdist": POSITIVE})
        for whole in ((7, 5, 33), (3, 5, 9, 65), (31, 17, 131), (2, 3, 7, 3, 19))
        for power in (1.0, 2.0)
    ),
    "chamfer_distance_grad": tuple(
        Together(
            ((batch, count, 2), (batch, count, 2), *[(batch, count)] * 4),
            {},
            {"idx1": places_of(count), "idx2": places_of(count)},
        )
        for batch, count in ((1, 8), (2, 33), (3, 257))
    ),
    "chunk_cat": tuple(
        Together((shape,), {"dim": 0, "num_chunks": chunks})
        for shape, chunks in (((8,), 2), ((31,), 3), ((7, 33), 2), ((3, 5, 65), 3), ((97, 257), 5))
    ),
    "cross_entropy_grad": tuple(
        Together(((rows, classes), (rows,)), {}, {"target": places_of(classes)})
        for rows, classes in ((1, 8), (7, 33), (97, 257))
    ),
    "cross_entropy_loss": tuple(
        Together(
            ((rows, classes), (rows,), (classes,) if weighs else None),
            {"reduction": reduction},
            {"target": places_of(classes), "weight": POSITIVE},
        )
        for rows, classes in ((1, 8), (7, 33), (97, 257))
        for reduction, weighs in (("mean", False), ("sum", True), ("none", True))
    ),
    "cross_entropy_loss_grad": tuple(
        Together(
            (
                (rows,) if reduction == "none" else (1,),
                *((rows, classes), (rows,)),
                (classes,) if weighs else None,
            ),
            {"reduction": reduction},
            {
                # Logarithms of chances, which need not sum up to 1.
                "log_prob": Source("uniform", -6.0, -0.25),
                "target": places_of(classes),
                "weight": POSITIVE,
            },
        )
        for rows, classes in ((1, 8), (7, 33), (97, 257))
        for reduction, weighs in (("mean", False), ("sum", True), ("none", True))
    ),
    "expandv": tuple(
        Together((shape,), {"shape": whole})
        for shape, whole in (
            *(((1,), (31,)), ((7, 1), (7, 33)), ((1, 33), (7, 33)), ((5, 1, 65), (3, 5, 4, 65))),
            *(((17, 19), (2, 3, 17, 19)), ((97, 1), (97, 1031))),
        )
    ),
    "expand_into_jagged_permute": (
        Together(
            ((3,), (4,), (4,)),
            {"output_size": 15},
            {
                "permute": given(2, 0, 1),
                "input_offsets": given(0, 4, 9, 15),
                "output_offsets": given(0, 6, 10, 15),
            },
        ),
    ),
    "feeds_repeat": tuple(
        Together(
            ((rows, *row), (rows,)),
            {"output_feeds_size": 3 * rows + 2},
            {"feeds_repeat_times": given(*(float((3 * n + 1) % 4) for n in range(rows)))},
        )
        for rows, row in ((5, (8,)), (7, (33,)), (33, (5, 13)), (97, (257,)))
    ),
    "fill": tuple(
        Together(((len(shape),), (1,)), {}, {"dims": given(*shape)})
        for shape in ((31,), (7, 33), (3, 5, 65), (97, 1031))
    ),
    "fused_matmul_gelu": tuple(
        Together(((*rows, inner), (columns, inner), (columns,) if biased else None))
        for rows, inner, columns, biased in (
            *(((16,), 16, 16, True), ((7,), 33, 65, True)),
            *(((3, 5), 65, 129, False), ((97,), 257, 131, True)),
        )
    ),
    "group_normalization_grad": tuple(
        Together((whole, whole, whole, whole[:2], whole[:2]), {}, {"rstd": POSITIVE})
        for whole in ((1, 1, 8), (2, 3, 65), (3, 2, 1031))
    ),
    "hinge_embedding_loss": tuple(
        Together(
            (shape, shape),
            {"reduction": reduction},
            {
                "target": Source(
                    values=tuple(1.0 if n * 7 % 5 < 3 else -1.0 for n in range(math.prod(shape)))
                )
            },
        )
        for shape in ((31,), (7, 33), (97, 1031))
        for reduction in ("none", "mean", "sum")
    ),
    "inplace_scatter_add": tuple(
        Together(((9, columns), (6,), (6, columns)), {}, {"indices": places_of(9)})
        for columns in (8, 33, 1031)
    ),
    "iou_v2": (
        *(
            Together(
                ((count, 4), (others, 4)),
                {"mode": mode, "aligned": False, "eps": 0.0625},
                {"bboxes": _boxes(count, 3), "gtboxes": _boxes(others, 5)},
            )
            for count, others, mode in ((8, 9, "iou"), (33, 7, "iof"), (257, 65, "iou"))
        ),
        *(
            Together(
                ((4, count), (4, count)),
                {"mode": mode, "aligned": True, "eps": 0.0625},
                {
                    "bboxes": _boxes(count, 3, by_column=True),
                    "gtboxes": _boxes(count, 5, by_column=True),
                },
            )
            for count, mode in ((8, "iof"), (33, "iou"), (257, "iof"))
        ),
    ),
    "layer_normalization_grad": tuple(
        Together(
            (whole, whole, whole[1:], whole[:1], whole[:1]),
            {},
            {"rstd": POSITIVE},
        )
        for whole in ((1, 8), (1, 31), (7, 33), (15, 65), (102, 19), (97, 1031))
    ),
    "masked_softmax_with_rel_pos_bias": tuple(
        Together(
            (
                (windows * images, heads, rows, columns),
                (windows, rows, columns) if masks else None,
                (heads, rows, columns),
            )
        )
        for images, windows, heads, rows, columns in (
            *((1, 1, 1, 8, 16), (2, 2, 3, 7, 33), (3, 4, 2, 49, 49)),
        )
        for masks in (True, False)
    ),
    "modulate_grad": tuple(
        Together((whole, whole, (whole[0], whole[2]), (whole[0], whole[2])))
        for whole in ((1, 1, 8), (1, 7, 33), (3, 5, 65), (2, 17, 19), (5, 3, 130), (97, 2, 1031))
    ),
    "mul_addn": tuple(
        Together(((batch, rows, 1), (batch, 1, columns)), {"N": LIST_LENGTH})
        for batch, rows, columns in ((1, 8, 8), (3, 7, 33), (2, 65, 129))
    ),
    "multi_scale_deformable_attention_grad": tuple(
        Together(
            (
                *((batch, sum(h * w for h, w in maps), heads, channels), (len(maps), 2)),
                *((len(maps),), (batch, heads, len(maps), points, 2, queries)),
                *((batch, heads, len(maps), points, queries), (batch, queries, heads * channels)),
            ),
            {},
            {
                "value_spatial_shapes": given(*(size for sizes in maps for size in sizes)),
                "value_level_start_index": given(
                    *(sum(h * w for h, w in maps[:level]) for level in range(len(maps)))
                ),
                "sampling_locations": PROBABILITY,
                "attention_weights": PROBABILITY,
            },
        )
        for batch, heads, channels, queries, points, maps in (
            (1, 2, 8, 5, 4, ((3, 5),)),
            (2, 4, 32, 33, 4, ((6, 4), (3, 2))),
            (1, 8, 16, 7, 8, ((8, 8), (4, 5), (2, 3))),
        )
    ),
    "nll_loss": tuple(
        Together(
            ((rows, classes), (rows,), (classes,)),
            {"reduction": reduction},
            {"target": places_of(classes), "weight": POSITIVE},
        )
        for rows, classes, reduction in ((1, 8, "mean"), (7, 33, "sum"), (97, 257, "none"))
    ),
    "nll_loss_grad": tuple(
        Together(
            ((rows, classes), (rows,) if reduction == "none" else (1,), (rows,), (classes,), (1,)),
            {"reduction": reduction},
            {"target": places_of(classes), "weight": POSITIVE, "total_weight": POSITIVE},
        )
        for rows, classes, reduction in ((1, 8, "mean"), (7, 33, "sum"), (97, 257, "none"))
    ),
    # Its functions come here with one of these exponents, and leave the others to `pow`.
    "pows": tuple(
        Together((shape, (1,)), {}, {"x1": POSITIVE, "x2": given(exponent)})
        for shape in ((31,), (3, 5, 65), (97, 1031))
        for exponent in (-2.0, -1.0, -0.5, 0.5, 2.0, 3.0)
    ),
    "radix_top_k": tuple(
        Together(
            ((rows, columns), (1,)),
            {"largest": largest},
            {"x": repeated(different(columns), rows), "k": given(most)},
        )
        for rows, columns, most in ((1, 31, 3), (7, 33, 33), (5, 256, 17))
        for largest in (True, False)
    ),
    "scatter_elements": tuple(
        Together(
            ((rows, columns),) * 3,
            {"axis": 0, "reduction": reduction},
            {
                "indices": same_place(reversed(range(rows)), columns)
                if reduction == "none"
                else places_of(rows)
            },
        )
        for rows, columns in _SCATTERED
        for reduction in ("none", "add")
    ),
    "scatter_nd_update": tuple(
        Together(
            (whole, (4, axes), (4, *whole[axes:])),
            {},
            {
                "indices": given(
                    *(
                        min(place + axis, size - 1)
                        for place in (3, 0, 2, 1)
                        for axis, size in enumerate(whole[:axes])
                    )
                )
            },
        )
        for whole in ((5,), (5, 33), (7, 6, 65))
        for axes in (1, len(whole))
    ),
    # Steps of the last axis are 1, by the document.
    "stack_group_points": tuple(
        Together(
            ((batches * points, columns), (batches,), (batches * rows, samples), (batches,)),
            {},
            {
                "features_batch_cnt": given(*[float(points)] * batches),
                "indices": places_of(points),
                "indices_batch_cnt": given(*[float(rows)] * batches),
            },
        )
        for batches, points, columns, rows, samples in (
            *((1, 8, 8, 4, 2), (2, 33, 7, 5, 16), (3, 65, 33, 17, 5)),
        )
    ),
    "strided_slice_assign": tuple(
        Together(
            (
                whole,
                tuple(len(range(*one)) for one in zip(begin, end, step, strict=True)),
                *[(len(whole),)] * 3,
            ),
            {},
            {"begin": given(*begin), "end": given(*end), "strides": given(*step)},
        )
        for whole, begin, end, step in (
            ((31,), (2,), (29,), (1,)),
            ((7, 33), (1, 0), (6, 33), (2, 1)),
            ((3, 5, 65), (0, 1, 3), (3, 4, 60), (2, 2, 1)),
            ((97, 257), (3, 1), (90, 250), (3, 1)),
        )
    ),
    "thnn_fused_lstm_cell": tuple(
        Together(((rows, 4 * size), (rows, 4 * size), (rows, size), (4 * size,), (4 * size,)))
        for rows, size in ((1, 8), (3, 33), (17, 65), (5, 257))
    ),
    "mat_mul": _PRODUCTS,
    "matmul_fp32": _PRODUCTS,
    # A row of n has n x n sums.
    "pdist_grad": tuple(
        Together(
            ((rows * (rows - 1) // 2,), (rows, columns), (rows * (rows - 1) // 2,)),
            {"p": power},
            {"pdist": POSITIVE},
        )
        for rows, columns in ((2, 8), (5, 33), (17, 65))
        for power in (1.0, 2.0)
    ),
    "segsum": tuple(
        Together((shape,)) for shape in ((1, 1, 16), (2, 3, 33), (2, 3, 5, 65), (1, 2, 2, 257))
    ),
    "three_interpolate_backward": tuple(
        Together(
            ((batch, channels, count), (batch, count, 3), (batch, count, 3)),
            {"m": points},
            {"idx": places_of(points), "weight": PROBABILITY},
        )
        for batch, channels, count, points in ((1, 16, 8, 8), (2, 33, 65, 31), (3, 7, 257, 64))
    ),
    "transform_bias_rescale_qkv": tuple(
        Together(((batch, rows, 3 * size), (3 * size,)), {"num_heads": heads})
        for batch, rows, size, heads in ((1, 1, 16, 1), (2, 5, 48, 3), (3, 17, 128, 4))
    ),
    "transpose_batch_mat_mul": tuple(
        Together(
            ((batch, rows, inner) if plain else (rows, batch, inner), (batch, inner, columns)),
            {
                "perm_x1": (0, 1, 2) if plain else (1, 0, 2),
                "perm_x2": (0, 1, 2),
                "perm_y": (1, 0, 2),
            },
            # What is quantised needs a scale.
            results=frozenset({"float32", "float16", "bfloat16"}),
        )
        for batch, rows, inner, columns in ((2, 32, 128, 256), (3, 17, 64, 128), (4, 7, 192, 64))
        for plain in (True, False)
    ),
    "unfold_grad": tuple(
        Together(
            (
                (*whole[:dim], (whole[dim] - size) // step + 1, *whole[dim + 1 :], size),
                (len(whole),),
            ),
            {"dim": dim, "size": size, "step": step},
            {"input_sizes": given(*whole)},
        )
        for whole, dim, size, step in (
            *(((31,), 0, 4, 3), ((7, 33), 1, 5, 2), ((7, 33), 0, 3, 1), ((3, 5, 65), 2, 8, 8)),
            *(((2, 3, 17, 19), 2, 4, 5), ((97, 1031), 1, 16, 7)),
        )
    ),
}
"""By names without a version; operators that are named here have these cases and no others."""
