// Runs the model file that is its argument, twice side by side, and prints the results' elements; after --open it opens
// each of its arguments and prints how that went.
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>

#include "opkit/model/engine.h"

using opkit::model::Array;

static void open_each(char** paths) {
  for (; *paths != nullptr; ++paths) {
    try {
      opkit::model::Engine(*paths).create_context();
      std::printf("%s opens\n", *paths);
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
  }
}

int main(int, char** arguments) {
  if (std::string(arguments[1]) == "--open") {
    open_each(arguments + 2);
    return 0;
  }
  try {
    const opkit::model::Engine engine(arguments[1]);
    std::vector<int64_t> tokens(16);
    std::iota(tokens.begin(), tokens.end(), 0);
    std::vector<float> x(512);
    for (size_t i = 0; i < x.size(); ++i) x[i] = -2.0f + 4.0f * static_cast<float>(i) / 511.0f;
    const std::map<std::string, Array> inputs{{"tokens", Array::of({2, 8}, tokens)}, {"x", Array::of({2, 8, 32}, x)}};
    std::vector<Array> found[2];
    std::vector<std::thread> threads;
    for (auto& results : found) {
      threads.emplace_back([&engine, &inputs, &results] { results = engine.create_context().run(inputs); });
    }
    for (auto& thread : threads) thread.join();
    if (found[0].at(0).bytes != found[1].at(0).bytes) throw std::runtime_error("two contexts differ");
    for (const float value : found[0][0].floats()) std::printf("%.9g\n", value);
    try {
      tokens[3] = 20;
      engine.create_context().run({{"tokens", Array::of({2, 8}, tokens)}, {"x", inputs.at("x")}});
      return 3;
    } catch (const std::invalid_argument& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
