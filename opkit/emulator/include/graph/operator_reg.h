/// Prototypes for the graph engine, REG_OP(Name).INPUT(...).OP_END_FACTORY_REG(Name). opkit builds no graphs: an
/// operator is what its OpDef says, and such a prototype says nothing here.
#pragma once

#include "graph/operator.h"

namespace ge {

/// What a prototype's clauses become.
struct IgnoredPrototype {
  IgnoredPrototype clause() const { return *this; }
};

}  // namespace ge

#define REG_OP(name) \
  [[maybe_unused]] static const ::ge::IgnoredPrototype opkit_prototype_##name = ::ge::IgnoredPrototype()
#define INPUT(...) clause()
#define OPTIONAL_INPUT(...) clause()
#define DYNAMIC_INPUT(...) clause()
#define OUTPUT(...) clause()
#define DYNAMIC_OUTPUT(...) clause()
#define ATTR(...) clause()
#define REQUIRED_ATTR(...) clause()
#define DATATYPE(...) clause()
#define GRAPH(...) clause()
#define DYNAMIC_GRAPH(...) clause()
#define OP_END_FACTORY_REG(name) clause();
