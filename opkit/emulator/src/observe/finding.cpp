#include "observe/finding.h"

#include <iterator>
#include <utility>

#include "core/launch_state.h"
#include "isa/table.h"
#include "memory/bounds.h"

namespace opkit {

AccessSite site_of(const Instr& instr) { return {instr.where.file, instr.where.line, instr.op, instr.pipe}; }

Site resolve(const AccessSite& site) {
  const char* name = site.op == Op::kCount ? "" : row_of(site.op).name;
  return {site.file == nullptr ? "" : site.file, site.line, name, site.pipe, "", 0};
}

std::string place_text(const AccessSite& site) {
  if (site.file == nullptr || *site.file == '\0') return "an unknown line";
  const std::string path = site.file;
  return path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(site.line);
}

void place_finding(Finding& finding, const Core& core, Space space, uint64_t first, uint64_t last) {
  finding.space = space_name(space);
  uint64_t base = 0;
  if (space == Space::GM) {
    base = first;
    if (const GmRange* range = range_at(core.launch->launch->gm, first)) {
      base = range->begin;
      finding.allocation = range->name;
    }
  } else {
    finding.allocation = buffer_text(space, first);
  }
  finding.begin = first - base;
  finding.end = last - base;
}

Finding& FindingList::at(const char* id, const Core& core, const AccessSite& site, const AccessSite& other,
                         bool& is_new) {
  if (only_block_ != kEveryBlock && core.block != only_block_) {
    is_new = false;
    return unwanted_;
  }
  const Key key = {id, site.file, site.line, site.op, other.file, other.line, other.op};
  const auto [position, inserted] = index_.try_emplace(key, entries_.size());
  is_new = inserted;
  if (!inserted) {
    Entry& entry = entries_[position->second];
    if (entry.last_instruction != core.issued) ++entry.finding.count;
    entry.last_instruction = core.issued;
    return entry.finding;
  }
  Entry& entry = entries_.emplace_back();
  entry.key = key;
  entry.last_instruction = core.issued;
  Finding& finding = entry.finding;
  finding.id = id;
  finding.site = resolve(site);
  finding.other = resolve(other);
  finding.block = finding.other_block = core.block;
  finding.sub_block = core.sub_block;
  finding.core = finding.other_core = core.index;
  finding.is_cube = core.kind == SubCore::AIC;
  finding.instruction = core.issued;
  finding.count = 1;
  return finding;
}

void FindingList::merge(FindingList&& other) {
  for (Entry& entry : other.entries_) {
    const auto [position, inserted] = index_.try_emplace(entry.key, entries_.size());
    if (inserted) {
      entries_.push_back(std::move(entry));
    } else {
      entries_[position->second].finding.count += entry.finding.count;
    }
  }
  other.clear();
}

std::vector<Finding> FindingList::take() {
  std::vector<Finding> findings;
  for (Entry& entry : entries_) findings.push_back(std::move(entry.finding));
  clear();
  return findings;
}

Finding* FindingGroups::add(Finding finding) {
  const Key key = {finding.id + finding.fault, finding.kernel,    finding.site.file + finding.site.module,
                   finding.site.instruction,   finding.site.line, finding.site.offset,
                   finding.other.file,         finding.other.line};
  const auto [position, inserted] = index_.try_emplace(key, findings_.size());
  if (inserted) {
    findings_.push_back(std::move(finding));
    return &findings_.back();
  }
  findings_[position->second].count += finding.count;
  return nullptr;
}

std::vector<Finding> FindingGroups::take() {
  index_.clear();
  std::vector<Finding> findings(std::make_move_iterator(findings_.begin()), std::make_move_iterator(findings_.end()));
  findings_.clear();
  return findings;
}

}  // namespace opkit
