/// Keys and values of sequences that grow by a token at a time, in blocks of tokens; and attention over them.
///
/// A sequence is a list of blocks. Sequences that begin with the same tokens share the blocks that are full of them; a
/// shared block that a sequence writes to is copied first. Blocks that no sequence uses are kept for prompts to come,
/// and given up, the longest unused first, when others need room. One manager holds one layer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "td/kernels.h"
#include "td/load_balancer.h"
#include "td/mm/memory_manager.h"

namespace td {

struct KVCacheConfig {
  int64_t kv_heads = 1;
  int64_t head_dim = 128;
  mm::DataType dtype = mm::DataType::FLOAT16;
  int64_t block_tokens = 16;
  int64_t initial_tokens = 256;
  int64_t max_tokens = 0;  ///< what all blocks may hold; 0: as much as the device has room for
};

struct KVCacheStatistics {
  int64_t blocks = 0, free_blocks = 0, cached_blocks = 0, used_blocks = 0;
  int64_t capacity_tokens = 0;
  uint64_t new_bytes = 0;       ///< of new keys and values, copied into blocks
  uint64_t moved_bytes = 0;     ///< copied from block to block, where a shared one was written to
  uint64_t growths = 0;         ///< how often memory was added; nothing is copied then
  uint64_t shared_tokens = 0;   ///< that prompts found in blocks which were there
  uint64_t evicted_blocks = 0;  ///< kept blocks that were given up for others
};

class IncrementalKVCacheManager {
 public:
  static constexpr int kSegments = 12;  ///< as many as the kernel takes; each doubles what there is

  /// Throws std::invalid_argument that names the setting.
  explicit IncrementalKVCacheManager(const KVCacheConfig& config) : config_(config) {
    require(config.kv_heads >= 1, "kv_heads", config.kv_heads, "1 or more");
    require(config.head_dim >= 16 && config.head_dim <= 256 && config.head_dim % 16 == 0, "head_dim", config.head_dim,
            "a multiple of 16 up to 256");
    require(config.block_tokens >= 1 && config.block_tokens <= 4096, "block_tokens", config.block_tokens, "1 to 4096");
    require(config.max_tokens >= 0, "max_tokens", config.max_tokens, "0 or more");
    require(config.initial_tokens >= 1, "initial_tokens", config.initial_tokens, "1 or more");
    if (config.dtype != mm::DataType::FLOAT16 && config.dtype != mm::DataType::BFLOAT16) {
      throw std::invalid_argument("[IncrementalKVCacheManager] dtype: keys and values are float16 or bfloat16");
    }
    row_bytes_ = config.kv_heads * config.head_dim * mm::size_of(config.dtype);
    block_bytes_ = row_bytes_ * config.block_tokens;
    grow_to(config.initial_tokens);
  }

  /// A sequence without tokens.
  int64_t add_sequence() {
    const int64_t id = next_sequence_++;
    sequences_[id];
    return id;
  }

  /// A sequence that begins with as many whole blocks of `prompt` as there are already; `length` says how many tokens
  /// that is, and their keys and values need not be computed. The last token is never shared: the model needs its step.
  int64_t add_sequence(const std::vector<int64_t>& prompt) {
    const int64_t id = add_sequence();
    Sequence& sequence = sequences_[id];
    uint64_t parent = 0;
    const int64_t size = config_.block_tokens;
    for (int64_t begin = 0; begin + size < static_cast<int64_t>(prompt.size()); begin += size) {
      const auto found = known_.find({parent, tokens_of(prompt, begin)});
      if (found == known_.end()) break;
      take(found->second);
      sequence.blocks.push_back(found->second);
      parent = blocks_[static_cast<size_t>(found->second)].content;
      sequence.length += size;
    }
    sequence.tokens.assign(prompt.begin(), prompt.begin() + sequence.length);
    statistics_.shared_tokens += static_cast<uint64_t>(sequence.length);
    return id;
  }

  /// A second sequence with the same tokens so far, for another continuation: all blocks are shared.
  int64_t fork(int64_t from) {
    Sequence copy = find(from, "fork");
    for (const int64_t block : copy.blocks) ++blocks_[static_cast<size_t>(block)].users;
    const int64_t id = next_sequence_++;
    sequences_[id] = std::move(copy);
    return id;
  }

  /// Gives a sequence's blocks back; those with known tokens are kept for prompts to come while nobody needs the room.
  void remove_sequence(int64_t id) {
    Sequence& sequence = find(id, "remove_sequence");
    // The last first: the beginning of a prompt is worth more than its end.
    for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block) release(*block);
    sequences_.erase(id);
  }

  /// Copies `count` new keys and values, (count, kv_heads, head_dim) each, to `position` of a sequence: to its end, or
  /// over what it held from there on. Only these rows are copied. `tokens`, where given, lets prompts share the blocks.
  /// Throws std::out_of_range for a gap, std::length_error where every block is in use and there may be no more; what
  /// the sequence held from `position` on is gone then too.
  void update_kv_cache(int64_t id, const void* new_k, const void* new_v, int64_t position, int64_t count = 1,
                       const int64_t* tokens = nullptr) {
    Sequence& sequence = find(id, "update_kv_cache");
    if (new_k == nullptr || new_v == nullptr) throw std::invalid_argument("[update_kv_cache] new_k or new_v is null");
    if (count < 0) throw std::invalid_argument("[update_kv_cache] count is " + std::to_string(count));
    if (position < 0 || position > sequence.length) {
      throw std::out_of_range("[update_kv_cache] position " + std::to_string(position) + " of sequence " +
                              std::to_string(id) + ", which holds " + std::to_string(sequence.length) +
                              " tokens: a gap would stay between");
    }
    truncate(sequence, position);
    make_room(sequence, position, count);
    const int64_t size = config_.block_tokens;
    auto& manager = mm::MemoryManager::instance();
    mm::PipelineStatus last;
    for (int64_t done = 0; done < count;) {
      const int64_t at = position + done;
      const int64_t rows = std::min(count - done, size - at % size);
      const int64_t block = sequence.blocks[static_cast<size_t>(at / size)];
      const int64_t bytes = rows * row_bytes_;
      for (const bool is_value : {false, true}) {
        const char* source = static_cast<const char*>(is_value ? new_v : new_k) + done * row_bytes_;
        mm::DMATask task;
        task.src = manager.prepare_tensor(const_cast<char*>(source), bytes_desc(bytes));
        task.dst = segment_of(block).memory;
        task.offset = offset_of(block, is_value) + at % size * row_bytes_;
        task.size = bytes;
        last = manager.schedule_dma(task);
        statistics_.new_bytes += static_cast<uint64_t>(bytes);
      }
      done += rows;
    }
    if (last.task != 0) manager.wait(last);
    sequence.length = position + count;
    const bool are_known = static_cast<int64_t>(sequence.tokens.size()) == position && tokens != nullptr;
    if (are_known) {
      sequence.tokens.insert(sequence.tokens.end(), tokens, tokens + count);
      for (int64_t block = position / size; (block + 1) * size <= sequence.length; ++block) publish(sequence, block);
    }
  }

  /// Attention of one new token of each sequence over all of its tokens: `q` and `out` are (sequences, q_heads,
  /// head_dim), q_heads a multiple of kv_heads. Each core takes heads of sequences, the longest first.
  void attention(const std::vector<int64_t>& ids, const void* q, void* out, int64_t q_heads, float scale) const {
    if (q_heads < 1 || q_heads % config_.kv_heads != 0) {
      throw std::invalid_argument("[attention] q_heads is " + std::to_string(q_heads) +
                                  ", expected a multiple of kv_heads, " + std::to_string(config_.kv_heads));
    }
    if (ids.empty()) return;
    std::vector<int32_t> tables, begins, lengths;
    std::vector<double> work;
    for (const int64_t id : ids) {
      const Sequence& sequence = find(id, "attention");
      if (sequence.length == 0)
        throw std::invalid_argument("[attention] sequence " + std::to_string(id) + " has no tokens");
      begins.push_back(static_cast<int32_t>(tables.size()));
      lengths.push_back(static_cast<int32_t>(sequence.length));
      for (const int64_t block : sequence.blocks) {
        const Block& entry = blocks_[static_cast<size_t>(block)];
        tables.push_back(static_cast<int32_t>(entry.segment << 24 | entry.index));
      }
      work.insert(work.end(), static_cast<size_t>(config_.kv_heads), static_cast<double>(sequence.length) + 64);
    }
    const int cores = std::min(vector_cores(), static_cast<int>(work.size()));
    const auto partition = MultiCoreLoadBalancer().sparse_aware_partition(work, cores);
    const std::vector<int32_t> starts = partition.starts(), order = partition.order();
    struct Plan {
      int32_t is_bfloat16, q_heads, kv_heads, head_dim, block_tokens;
      float scale;
      int32_t reserved[2];
    };
    const std::vector<Plan> plan{{config_.dtype == mm::DataType::BFLOAT16,
                                  static_cast<int32_t>(q_heads),
                                  static_cast<int32_t>(config_.kv_heads),
                                  static_cast<int32_t>(config_.head_dim),
                                  static_cast<int32_t>(config_.block_tokens),
                                  scale,
                                  {0, 0}}};
    const size_t bytes = ids.size() * static_cast<size_t>(q_heads * config_.head_dim * mm::size_of(config_.dtype));
    std::vector<KernelMemory> arguments{{q, bytes},         {out, bytes},      memory_of(tables), memory_of(begins),
                                        memory_of(lengths), memory_of(starts), memory_of(order),  memory_of(plan)};
    for (size_t i = 0; i < kSegments; ++i) {
      if (i < segments_.size()) {
        arguments.push_back({segments_[i].memory->data(), static_cast<size_t>(segments_[i].memory->bytes())});
      } else {
        arguments.push_back({});
      }
    }
    launch_kernel("paged_attention", arguments, static_cast<uint32_t>(cores));
  }

  int64_t length(int64_t id) const { return find(id, "length").length; }
  std::vector<int64_t> block_table(int64_t id) const { return find(id, "block_table").blocks; }
  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * config_.block_tokens; }
  size_t sequence_count() const { return sequences_.size(); }
  const KVCacheConfig& config() const { return config_; }

  /// Where a token's keys, or values, lie in device memory: kv_heads * head_dim elements.
  const void* row(int64_t id, int64_t position, bool is_value) const {
    const Sequence& sequence = find(id, "row");
    if (position < 0 || position >= sequence.length) {
      throw std::out_of_range("[row] position " + std::to_string(position) + " of sequence " + std::to_string(id) +
                              ", which holds " + std::to_string(sequence.length) + " tokens");
    }
    const int64_t block = sequence.blocks[static_cast<size_t>(position / config_.block_tokens)];
    return static_cast<const char*>(segment_of(block).memory->data()) + offset_of(block, is_value) +
           position % config_.block_tokens * row_bytes_;
  }

  KVCacheStatistics statistics() const {
    KVCacheStatistics all = statistics_;
    all.blocks = static_cast<int64_t>(blocks_.size());
    all.free_blocks = static_cast<int64_t>(free_.size());
    all.cached_blocks = static_cast<int64_t>(unused_.size());
    all.used_blocks = all.blocks - all.free_blocks - all.cached_blocks;
    all.capacity_tokens = capacity();
    return all;
  }

  /// What is wrong with the books, empty where every block is in one place and counted right. For tests.
  std::string audit() const {
    std::vector<int64_t> users(blocks_.size());
    for (const auto& [id, sequence] : sequences_) {
      const int64_t needed = (sequence.length + config_.block_tokens - 1) / config_.block_tokens;
      if (static_cast<int64_t>(sequence.blocks.size()) != needed)
        return "sequence " + std::to_string(id) + " has blocks too many or too few";
      for (const int64_t block : sequence.blocks) ++users[static_cast<size_t>(block)];
    }
    std::vector<int> places(blocks_.size());
    for (const int64_t block : free_) ++places[static_cast<size_t>(block)];
    for (const int64_t block : unused_) ++places[static_cast<size_t>(block)];
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const std::string name = "block " + std::to_string(i);
      if (users[i] != blocks_[i].users)
        return name + " counts " + std::to_string(blocks_[i].users) + " users of " + std::to_string(users[i]);
      if (places[i] + (users[i] > 0 ? 1 : 0) != 1) return name + (places[i] == 0 ? " is lost" : " is in two places");
    }
    return "";
  }

 private:
  using Key = std::pair<uint64_t, std::vector<int64_t>>;  ///< content before it, own tokens

  struct Segment {
    mm::TensorMemoryPtr memory;
  };
  struct Block {
    int64_t segment = 0, index = 0;
    int64_t users = 0;
    uint64_t content = 0;  ///< a number for what it and the blocks before it hold; 0: not known
    Key key;
    std::list<int64_t>::iterator place;  ///< in unused_, without users
  };
  struct Sequence {
    std::vector<int64_t> blocks;
    int64_t length = 0;
    std::vector<int64_t> tokens;  ///< of its beginning, as far as they are known
  };

  static void require(bool is_right, const char* name, int64_t value, const char* expected) {
    if (is_right) return;
    throw std::invalid_argument("[IncrementalKVCacheManager] " + std::string(name) + " is " + std::to_string(value) +
                                ", expected " + expected);
  }

  const Sequence& find(int64_t id, const char* function) const {
    const auto found = sequences_.find(id);
    if (found != sequences_.end()) return found->second;
    throw std::invalid_argument("[" + std::string(function) + "] there is no sequence " + std::to_string(id));
  }
  Sequence& find(int64_t id, const char* function) {
    return const_cast<Sequence&>(static_cast<const IncrementalKVCacheManager&>(*this).find(id, function));
  }

  static mm::TensorDesc bytes_desc(int64_t bytes) {
    mm::TensorDesc desc;
    desc.dtype = mm::DataType::UINT8;
    desc.shape = {bytes};
    return desc;
  }
  const Segment& segment_of(int64_t block) const {
    return segments_[static_cast<size_t>(blocks_[static_cast<size_t>(block)].segment)];
  }
  int64_t offset_of(int64_t block, bool is_value) const {
    return (blocks_[static_cast<size_t>(block)].index * 2 + (is_value ? 1 : 0)) * block_bytes_;
  }
  std::vector<int64_t> tokens_of(const std::vector<int64_t>& all, int64_t begin) const {
    return {all.begin() + begin, all.begin() + begin + config_.block_tokens};
  }

  /// More memory, behind what there is: nothing moves. Returns whether there may be more.
  bool grow_to(int64_t tokens) {
    if (config_.max_tokens > 0) tokens = std::min(tokens, config_.max_tokens);
    const int64_t wanted = (tokens + config_.block_tokens - 1) / config_.block_tokens;
    const int64_t more = wanted - static_cast<int64_t>(blocks_.size());
    if (more <= 0 || segments_.size() >= kSegments || more >= 1 << 24) return false;
    Segment segment;
    try {
      segment.memory = mm::MemoryManager::instance().allocate_tensor(bytes_desc(more * 2 * block_bytes_), mm::LEVEL_2);
    } catch (const std::bad_alloc&) {
      return false;
    }
    for (int64_t i = 0; i < more; ++i) {
      Block block;
      block.segment = static_cast<int64_t>(segments_.size());
      block.index = i;
      free_.push_back(static_cast<int64_t>(blocks_.size()));
      blocks_.push_back(block);
    }
    std::sort(free_.begin(), free_.end(), std::greater<>());
    segments_.push_back(std::move(segment));
    statistics_.growths += segments_.size() > 1;
    return true;
  }

  /// All blocks that `count` tokens at `position` write to: new ones, and copies of shared ones; or none of them.
  void make_room(Sequence& sequence, int64_t position, int64_t count) {
    const int64_t size = config_.block_tokens;
    const int64_t needed = (position + count + size - 1) / size;
    const auto held = static_cast<int64_t>(sequence.blocks.size());
    const bool is_copied =
        count > 0 && position % size != 0 && blocks_[static_cast<size_t>(sequence.blocks.back())].users > 1;
    const int64_t wanted = needed - held + (is_copied ? 1 : 0);
    while (static_cast<int64_t>(free_.size() + unused_.size()) < wanted) {
      // Twice the position, as the article has it, or twice what there is: whichever is more.
      const int64_t least = capacity() + (wanted - static_cast<int64_t>(free_.size() + unused_.size())) * size;
      const int64_t before = capacity();
      if (grow_to(std::max({2 * position, 2 * capacity(), least})) && capacity() > before) continue;
      throw std::length_error("[update_kv_cache] " + std::to_string(wanted) + " blocks are wanted, and " +
                              std::to_string(free_.size() + unused_.size()) + " of " + std::to_string(blocks_.size()) +
                              " are left: remove a sequence, or allow more than " + std::to_string(capacity()) +
                              " tokens (max_tokens)");
    }
    if (is_copied) {
      const int64_t shared = sequence.blocks.back();
      const int64_t own = fresh();
      copy_rows(shared, own, position % size);
      release(shared);
      sequence.blocks.back() = own;
    }
    // A block of its own that it goes on in: what was known of its rows behind `position` ends here.
    if (count > 0 && position % size != 0) forget(sequence.blocks.back());
    while (static_cast<int64_t>(sequence.blocks.size()) < needed) sequence.blocks.push_back(fresh());
  }

  /// A block for one user, of those that are free or else the one that was unused longest. There must be one.
  int64_t fresh() {
    int64_t block = 0;
    if (!free_.empty()) {
      block = free_.back();
      free_.pop_back();
    } else {
      block = unused_.front();
      unused_.pop_front();
      forget(block);
      ++statistics_.evicted_blocks;
    }
    blocks_[static_cast<size_t>(block)].users = 1;
    return block;
  }

  void take(int64_t index) {
    Block& block = blocks_[static_cast<size_t>(index)];
    if (block.users++ == 0) unused_.erase(block.place);
  }

  void release(int64_t index) {
    Block& block = blocks_[static_cast<size_t>(index)];
    if (--block.users > 0) return;
    if (block.content == 0) {
      free_.push_back(index);
    } else {
      block.place = unused_.insert(unused_.end(), index);
    }
  }

  void forget(int64_t index) {
    Block& block = blocks_[static_cast<size_t>(index)];
    if (block.content != 0) known_.erase(block.key);
    block.content = 0;
    block.key = {};
  }

  /// Gives up what a sequence holds from `length` on. A block that stays half full keeps its rows until they are
  /// written.
  void truncate(Sequence& sequence, int64_t length) {
    if (length == sequence.length) return;
    const int64_t size = config_.block_tokens;
    const auto kept = static_cast<size_t>((length + size - 1) / size);
    while (sequence.blocks.size() > kept) {
      release(sequence.blocks.back());
      sequence.blocks.pop_back();
    }
    sequence.length = length;
    if (static_cast<int64_t>(sequence.tokens.size()) > length) sequence.tokens.resize(static_cast<size_t>(length));
  }

  void copy_rows(int64_t from, int64_t to, int64_t rows) {
    auto& manager = mm::MemoryManager::instance();
    mm::PipelineStatus last;
    for (const bool is_value : {false, true}) {
      mm::DMATask task;
      char* source = static_cast<char*>(segment_of(from).memory->data()) + offset_of(from, is_value);
      task.size = rows * row_bytes_;
      task.src = manager.prepare_tensor(source, bytes_desc(task.size));
      task.dst = segment_of(to).memory;
      task.offset = offset_of(to, is_value);
      last = manager.schedule_dma(task);
      statistics_.moved_bytes += static_cast<uint64_t>(task.size);
    }
    manager.wait(last);
  }

  /// Makes a full block known by its tokens, where no other block is.
  void publish(const Sequence& sequence, int64_t index) {
    const int64_t number = sequence.blocks[static_cast<size_t>(index)];
    const uint64_t parent =
        index == 0 ? 0 : blocks_[static_cast<size_t>(sequence.blocks[static_cast<size_t>(index - 1)])].content;
    if (index > 0 && parent == 0) return;
    Block& block = blocks_[static_cast<size_t>(number)];
    if (block.content != 0) return;
    Key key{parent, tokens_of(sequence.tokens, index * config_.block_tokens)};
    if (!known_.emplace(key, number).second) return;
    block.key = std::move(key);
    block.content = ++last_content_;
  }

  const KVCacheConfig config_;
  int64_t row_bytes_ = 0, block_bytes_ = 0;
  std::vector<Segment> segments_;
  std::vector<Block> blocks_;
  std::vector<int64_t> free_;
  std::list<int64_t> unused_;  ///< without users and with known content, the longest unused first
  std::map<Key, int64_t> known_;
  std::map<int64_t, Sequence> sequences_;
  int64_t next_sequence_ = 0;
  uint64_t last_content_ = 0;
  KVCacheStatistics statistics_;
};

}  // namespace td
