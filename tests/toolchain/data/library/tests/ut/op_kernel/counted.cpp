#include "counted.h"

int counted(const float* x, const float* y, int count, float by) {
  int right = 0;
  for (int i = 0; i < count; ++i) right += y[i] == x[i] + by ? 1 : 0;
  return right;
}
