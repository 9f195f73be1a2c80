// A dump of PyTorch's flight recorder: the last collectives that one rank has entered. Reads both
// forms, JSON (the control plane's fr_trace_json) and pickle (NCCL's pipe and dump file). Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::recorder {

struct Entry {
  std::string group = {};        // process_group[0], equal on all ranks: "0"
  std::string group_words = {};  // process_group[1]: "default_pg"
  std::int64_t sequence = 0;     // collective_seq_id: counts the collectives of the group from 1
  std::string name = {};         // "gloo:all_reduce"; printable, like all texts here
  std::string sizes = {};        // input_sizes: "[[4, 8]]"
  std::string types = {};        // input_dtypes: "Float"
  std::int64_t bytes = -1;       // of the inputs. -1: unknown
  std::int64_t created_ns = 0;   // wall clock
  std::int64_t moved_ns = 0;    // wall clock: created, or seen to begin or end; the latest of these
  bool point_to_point = false;  // send or recv
  // The recorder has no end of this collective. gloo leaves the state at "scheduled" but sets
  // `retired`.
  bool active = false;
};

struct Dump {
  std::string version = {};
  std::vector<Entry> entries = {};  // as recorded, the oldest first
  // Global ranks by group, where the dump tells. PyTorch 2.14.1 does not for gloo.
  std::map<std::string, std::vector<int>> members = {};
};

struct DumpLimits {
  std::size_t bytes = 16U << 20;
  std::size_t values = 2U << 20;  // with stacks, 2,000 entries may have a million
  std::size_t entries = 32U << 10;
};

// Fails with Errc::corrupt if the bytes are neither form, or beyond the limits. Ignores entries
// that are no objects, and unknown members.
Result<Dump> read_dump(std::string_view bytes, const DumpLimits& limits = {});

}  // namespace lockstep::recorder
