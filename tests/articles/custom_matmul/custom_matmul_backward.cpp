// Not in the article, whose CMake names it: nothing calls it there either.
extern "C" void custom_matmul_backward() {}
