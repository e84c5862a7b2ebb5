/// All of td: memory, the cache of keys and values, sparse products, balanced cores, deadlocks, operators.
#pragma once

#include "td/deadlock_detector.h"
#include "td/kv_cache.h"
#include "td/load_balancer.h"
#include "td/mm/memory_manager.h"
#include "td/operator_registry.h"
#include "td/sparse_matmul.h"
