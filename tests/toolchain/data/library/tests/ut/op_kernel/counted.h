#pragma once

/// How many elements of y are those of x and `by` more.
int counted(const float* x, const float* y, int count, float by);
