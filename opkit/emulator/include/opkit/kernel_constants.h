/// Data types and formats as preprocessor constants, so that kernels can write `#if ORIG_DTYPE_X == DT_FLOAT` and
/// `#if FORMAT_X == FORMAT_ND`. The numbers are those of graph/types.h and of opkit/dtypes.py; a test compares them.
/// The toolchain includes this ahead of every kernel. Source: Ascend C programming guide, kernel-side implementation.
#pragma once

#define DT_FLOAT 0
#define DT_FLOAT16 1
#define DT_INT8 2
#define DT_INT32 3
#define DT_UINT8 4
#define DT_INT16 6
#define DT_UINT16 7
#define DT_UINT32 8
#define DT_INT64 9
#define DT_UINT64 10
#define DT_DOUBLE 11
#define DT_BOOL 12
#define DT_BF16 27

#define FORMAT_NCHW 0
#define FORMAT_NHWC 1
#define FORMAT_ND 2
#define FORMAT_NC1HWC0 3
#define FORMAT_FRACTAL_Z 4
#define FORMAT_HWCN 16
#define FORMAT_NDHWC 27
#define FORMAT_FRACTAL_NZ 29
#define FORMAT_NZ FORMAT_FRACTAL_NZ
#define FORMAT_NCDHW 30
#define FORMAT_DHWCN 31
#define FORMAT_NDC1HWC0 32
#define FORMAT_FRACTAL_Z_3D 33
