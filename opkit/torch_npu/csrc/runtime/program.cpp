#include "runtime/program.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace opkit::npu {
namespace {

using kernels::Step;

struct StepRow {
  const char* name;
  uint32_t operands;
  bool is_whole_able;
};

constexpr StepRow kSteps[] = {
#define OP(name, operands, whole) {#name, operands, std::string_view(#whole) != "NONE"},
#include "vector_ops.inc"
#undef OP
};

// Select by a mask takes the last 8 KiB of UB as scratch. Source: Select, constraints; docs/check.md, MEM-SCRATCH
constexpr uint32_t kUbBytes = 184 * 1024;

/// One value of a formula.
struct Node {
  Step step = Step::kCount;  ///< kCount: an input
  int a = -1, b = -1, c = -1;
  double value = 0;
  int number = -1;
  bool is_folded = false;
  bool operator==(const Node& other) const {
    return std::tie(step, a, b, c, value, number, is_folded) ==
           std::tie(other.step, other.a, other.b, other.c, other.value, other.number, other.is_folded);
  }
};

class Compiler {
 public:
  Compiler(std::string_view text, const std::vector<std::string>& inputs, const std::vector<std::string>& numbers,
           const std::vector<std::string>& outputs)
      : text_(text), numbers_(numbers), outputs_(outputs), results_(outputs.size(), -1) {
    for (const std::string& input : inputs) {
      names_[input] = static_cast<int>(nodes_.size());
      nodes_.push_back({});
      nodes_.back().number = static_cast<int>(nodes_.size());  // inputs are never the same value
    }
    input_count_ = inputs.size();
  }

  Program run() {
    statements();
    return emit();
  }

 private:
  /// Reads the text to its end; its last expression is the first result.
  void statements() {
    for (;;) {
      skip();
      if (at_ >= text_.size()) break;
      const size_t begin = at_;
      const std::string name = word();
      skip();
      if (!name.empty() && at_ < text_.size() && text_[at_] == '=' && text_.substr(at_, 2) != "==") {
        ++at_;
        names_[name] = comparison();
        for (size_t i = 0; i < outputs_.size(); ++i) {
          if (outputs_[i] == name) results_[i] = names_[name];
        }
      } else {
        at_ = begin;
        results_[0] = comparison();
      }
      skip();
      if (at_ < text_.size()) expect(';');
    }
  }

  [[noreturn]] void wrong(const std::string& what) const {
    TORCH_INTERNAL_ASSERT(false, "formula \"", std::string(text_), "\" at ", at_, ": ", what);
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(char c) {
    if (!take(std::string_view(&c, 1))) wrong(std::string("expected ") + c);
  }
  std::string word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  int add(Node node) {
    for (size_t i = input_count_; i < nodes_.size(); ++i) {
      if (nodes_[i] == node) return static_cast<int>(i);
    }
    nodes_.push_back(node);
    return static_cast<int>(nodes_.size()) - 1;
  }
  int make(Step step, int a = -1, int b = -1, int c = -1) {
    Node node;
    node.step = step;
    node.a = a;
    node.b = b;
    node.c = c;
    return add(node);
  }
  int constant(double value) {
    Node node;
    node.step = Step::Set;
    node.value = value;
    return add(node);
  }
  bool is_number(int i) const { return nodes_[i].step == Step::Set; }

  /// Sums, products and bounds with a number have steps of their own.
  int binary(Step with_tensor, Step with_number, int a, int b) {
    if (is_number(a) && !is_number(b)) std::swap(a, b);
    if (!is_number(b) || is_number(a)) return make(with_tensor, a, b);
    Node node = nodes_[b];
    node.step = with_number;
    node.a = a;
    return add(node);
  }

  int comparison() {
    int left = sum();
    static const std::pair<std::string_view, Step> kComparisons[] = {
        {"<=", Step::Le}, {">=", Step::Ge}, {"==", Step::Eq}, {"!=", Step::Ne}, {"<", Step::Lt}, {">", Step::Gt}};
    for (const auto& [token, step] : kComparisons) {
      if (take(token)) return make(step, left, sum());
    }
    return left;
  }
  int sum() {
    int left = product();
    for (;;) {
      if (take("+")) {
        left = binary(Step::Add, Step::Adds, left, product());
      } else if (take("-")) {
        const int right = product();
        Node& node = nodes_[right];
        if (is_number(right) && node.number < 0 && !is_number(left)) {
          left = binary(Step::Add, Step::Adds, left, constant(-node.value));
        } else {
          left = make(Step::Sub, left, right);
        }
      } else {
        return left;
      }
    }
  }
  int product() {
    int left = unary();
    for (;;) {
      if (take("*")) {
        left = binary(Step::Mul, Step::Muls, left, unary());
      } else if (take("/")) {
        left = make(Step::Div, left, unary());
      } else {
        return left;
      }
    }
  }
  int unary() {
    if (take("-")) {
      const int of = unary();
      if (is_number(of) && nodes_[of].number < 0) return constant(-nodes_[of].value);
      return binary(Step::Mul, Step::Muls, of, constant(-1));
    }
    return primary();
  }
  int primary() {
    skip();
    if (take("(")) {
      const int inner = comparison();
      expect(')');
      return inner;
    }
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.')) {
      size_t used = 0;
      const double value = std::stod(std::string(text_.substr(at_, 40)), &used);
      at_ += used;
      return constant(value);
    }
    const std::string name = word();
    if (take("(")) return call(name);
    if (name == "inf") return constant(INFINITY);
    if (name == "nan") return constant(NAN);
    if (name == "lane") return make(Step::Lane);
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i] != name) continue;
      Node node;
      node.step = Step::Set;
      node.number = static_cast<int>(i);
      return add(node);
    }
    wrong("unknown name " + name);
  }
  int call(const std::string& name) {
    std::vector<int> arguments;
    do {
      arguments.push_back(comparison());
    } while (take(","));
    expect(')');
    const auto one = [&](Step step) { return make(step, arguments.at(0)); };
    if (name == "fold") {
      if (fold_ >= 0) wrong("a second fold");
      fold_ = arguments.at(0);
      Node node;
      node.step = Step::kCount;
      node.is_folded = true;
      return folded_ = add(node);
    }
    if (name == "rsum") return one(Step::RowSum);
    if (name == "rmax") return one(Step::RowMax);
    if (name == "rmin") return one(Step::RowMin);
    if (name == "max") return binary(Step::Max, Step::Maxs, arguments.at(0), arguments.at(1));
    if (name == "min") return binary(Step::Min, Step::Mins, arguments.at(0), arguments.at(1));
    for (size_t i = 0; i < std::size(kSteps); ++i) {
      std::string step = kSteps[i].name;
      std::transform(step.begin(), step.end(), step.begin(), [](unsigned char c) { return std::tolower(c); });
      if (step != name || kSteps[i].operands != arguments.size()) continue;
      arguments.resize(3, -1);
      return make(static_cast<Step>(i), arguments[0], arguments[1], arguments[2]);
    }
    wrong("unknown function " + name);
  }

  Program emit() {
    Program program;
    const int count = static_cast<int>(nodes_.size());
    // Constants that only steps with a number of their own needed are not needed any more.
    std::vector<bool> is_needed(count, false);
    for (const int result : results_) {
      if (result < 0) wrong("an output has no value");
      is_needed[result] = true;
    }
    if (fold_ >= 0) is_needed[fold_] = true;
    for (int i = count; i-- > 0;) {
      if (!is_needed[i]) continue;
      for (const int operand : {nodes_[i].a, nodes_[i].b, nodes_[i].c}) {
        if (operand >= 0) is_needed[operand] = true;
      }
    }
    std::vector<int> last_use(count, -1);
    for (int i = 0; i < count; ++i) {
      for (const int operand : {nodes_[i].a, nodes_[i].b, nodes_[i].c}) {
        if (operand >= 0 && is_needed[i]) last_use[operand] = i;
      }
    }
    for (const int result : results_) last_use[result] = count;
    // What the fold reads and leaves outlives the tiles.
    if (fold_ >= 0) last_use[fold_] = last_use[folded_] = count;
    for (size_t i = 0; i < input_count_ && fold_ >= 0; ++i) last_use[i] = count;
    std::vector<int> place(count, -1);
    std::vector<uint8_t> free;
    const auto allocate = [&] {
      if (!free.empty()) {
        const uint8_t reg = free.back();
        free.pop_back();
        return reg;
      }
      if (program.register_count == kernels::kMaxRegisters) wrong("too many values at once");
      return static_cast<uint8_t>(program.register_count++);
    };
    // Before the body's own registers: it must not be one that the body gives back.
    if (folded_ >= 0) place[folded_] = allocate();
    for (size_t i = 0; i < input_count_; ++i) {
      program.is_input_used.push_back(is_needed[i]);
      place[i] = is_needed[i] ? allocate() : 0;
      program.input_registers.push_back(static_cast<uint8_t>(place[i]));
    }
    for (int i = static_cast<int>(input_count_); i < count; ++i) {
      if (!is_needed[i]) continue;
      const Node& node = nodes_[i];
      if (node.is_folded) {
        program.body_count = static_cast<uint32_t>(program.steps.size());
        program.has_fold = true;
        program.folded_register = static_cast<uint8_t>(place[i]);
        program.fold_register = static_cast<uint8_t>(place[fold_]);
        continue;
      }
      place[i] = allocate();
      kernels::Instruction it{};
      it.step = node.step;
      it.to = static_cast<uint8_t>(place[i]);
      it.a = static_cast<uint8_t>(node.a < 0 ? 0 : place[node.a]);
      it.b = static_cast<uint8_t>(node.b < 0 ? 0 : place[node.b]);
      it.c = static_cast<uint8_t>(node.c < 0 ? 0 : place[node.c]);
      it.value = static_cast<float>(node.value);
      it.whole = std::isfinite(node.value) ? static_cast<int64_t>(node.value) : 0;
      if (node.number >= 0) program.slots.push_back({static_cast<uint32_t>(program.steps.size()), node.number});
      program.is_whole_able &= kSteps[static_cast<size_t>(node.step)].is_whole_able;
      program.has_rows |= node.step >= Step::RowSum;
      program.has_lanes |= node.step == Step::Lane;
      program.steps.push_back(it);
      for (const int operand : {node.a, node.b, node.c}) {
        if (operand < 0 || last_use[operand] != i) continue;
        const auto reg = static_cast<uint8_t>(place[operand]);
        if (std::find(free.begin(), free.end(), reg) == free.end()) free.push_back(reg);
      }
    }
    if (!program.has_fold) program.body_count = static_cast<uint32_t>(program.steps.size());
    if (program.steps.size() > kernels::kMaxSteps) wrong("too many steps");
    for (const int result : results_) program.output_registers.push_back(static_cast<uint8_t>(place[result]));
    // Registers, the work and spare space of the kernel, its stage of 8 bytes a lane and a bit a lane.
    const double bytes_a_lane = 4.0 * (program.register_count + 5) + 8 + 0.125;
    program.tile_limit = static_cast<uint32_t>(kUbBytes / bytes_a_lane) / 64 * 64;
    return program;
  }

  std::string_view text_;
  size_t at_ = 0;
  const std::vector<std::string>& numbers_;
  const std::vector<std::string>& outputs_;
  std::vector<int> results_;
  std::vector<Node> nodes_;
  std::map<std::string, int> names_;
  size_t input_count_ = 0;
  int fold_ = -1;
  int folded_ = -1;
};

}  // namespace

Program compile(std::string_view formula, const std::vector<std::string>& inputs,
                const std::vector<std::string>& numbers, const std::vector<std::string>& outputs) {
  return Compiler(formula, inputs, numbers, outputs).run();
}

const Program& program_of(const char* formula, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& numbers, const std::vector<std::string>& outputs) {
  static std::mutex lock;
  static auto* programs = new std::map<std::string, Program>();
  std::string key = formula;
  for (const auto* names : {&inputs, &numbers, &outputs}) {
    key += '|';
    for (const std::string& name : *names) key += name + ",";
  }
  const std::lock_guard<std::mutex> guard(lock);
  const auto found = programs->find(key);
  if (found != programs->end()) return found->second;
  return programs->emplace(key, compile(formula, inputs, numbers, outputs)).first->second;
}

}  // namespace opkit::npu
