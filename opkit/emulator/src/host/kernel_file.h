/// Shared objects of kernels: loading them, and what they say of themselves.
#pragma once

#include <optional>
#include <string>

#include "opkit/kernel_entry.h"

namespace opkit::host {

/// Loads a shared object and returns its table; it stays loaded. Throws CallError where it is none of ours.
const KernelTable& load_kernel_file(const std::string& file);

/// The name of a table's only kernel. Throws CallError where it has several or none.
std::string only_name(const std::string& file, const KernelTable& table);

/// An entry with this name; one without a tiling key before those with one.
std::optional<KernelEntry> any_entry(const KernelTable& table, const std::string& name);

/// Kernels, tiling structs and template declarations as JSON; see opkit.toolchain.KernelImage.
std::string kernel_file_json(const KernelTable& table);

}  // namespace opkit::host
