// Reads code objects once, and checks later whether they are still the same.
#include "stacks/code_cache.h"

#include <algorithm>

namespace lockstep::stacks {
namespace {

// CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR.
constexpr std::uint32_t kGeneratorFlags = 0x20 | 0x80 | 0x200;
constexpr std::size_t kLongestName = 1'024;
constexpr std::size_t kLongestFile = 4'096;
constexpr std::size_t kLargestTable = 1U << 18;
// Above these, the cache is emptied. A training rank shows some 100 code objects in its life.
constexpr std::size_t kMostCodes = 2'048;
constexpr std::size_t kMostBytes = 1U << 20;

CodeIdentity identity_of(const ObjectCopy& copy, const Layout& layout) {
  CodeIdentity made;
  made.file = copy.pointer(layout.file_name);
  made.name = copy.pointer(layout.name);
  made.lines = copy.pointer(layout.line_table);
  made.first_line = copy.get<std::int32_t>(layout.first_line);
  if (layout.bytecode_copies != kNone) made.copies = copy.pointer(layout.bytecode_copies);
  // Before 3.11 code objects have no size of their own: the address of the bytecode does as well.
  made.size = copy.get<std::uint64_t>(layout.inline_bytecode() ? layout.size : layout.bytecode);
  return made;
}

std::size_t weight(const Code& code) {
  return code.function.size() + code.file.size() + code.lines.size();
}

}  // namespace

void CodeCache::refresh(Memory& memory, std::span<const Address> codes) {
  if (codes_.size() > kMostCodes || bytes_ > kMostBytes) {
    codes_.clear();
    bytes_ = 0;
  }
  std::vector<Address> wanted(codes.begin(), codes.end());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<ObjectCopy> copies(wanted.size());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    pieces.push_back(copies[i].piece(wanted[i], layout_->code_bytes));
  std::size_t done = 0;
  while (done < wanted.size()) {
    const std::size_t got = memory.read_pieces(std::span(pieces).subspan(done));
    for (std::size_t i = done; i < done + got; ++i)
      keep(memory, wanted[i], copies[i]);
    done += got;
    if (done < wanted.size()) forget(wanted[done++]);  // read_pieces() stops there: go on behind it
  }
}

void CodeCache::keep(Memory& memory, Address at, const ObjectCopy& copy) {
  const CodeIdentity identity = identity_of(copy, *layout_);
  const bool is_code = objects_.is(memory, copy.pointer(layout_->type), ObjectType::code);
  if (const auto known = codes_.find(at);
      is_code && known != codes_.end() && known->second.identity == identity)
    return;
  forget(at);
  if (!is_code) return;
  auto function = objects_.text(memory, identity.name, kLongestName);
  auto file = objects_.text(memory, identity.file, kLongestFile);
  auto lines = objects_.bytes(memory, identity.lines, kLargestTable);
  const auto bytes = layout_->inline_bytecode()
                         ? identity.size * 2
                         : objects_.bytes_size(memory, copy.pointer(layout_->bytecode));
  if (!function || !file || !lines || !bytes) return;
  Code code{.identity = identity,
            .function = *std::move(function),
            .file = *std::move(file),
            .lines = *std::move(lines),
            .bytes = *bytes,
            .generator = layout_->flags != kNone &&
                         (copy.get<std::uint32_t>(layout_->flags) & kGeneratorFlags) != 0};
  // Within a single look, a hostile process could show hundreds of huge tables.
  if (bytes_ + weight(code) > 2 * kMostBytes) return;
  bytes_ += weight(code);
  codes_.emplace(at, std::move(code));
}

void CodeCache::forget(Address at) {
  const auto known = codes_.find(at);
  if (known == codes_.end()) return;
  bytes_ -= weight(known->second);
  codes_.erase(known);
}

Code* CodeCache::find(Address code) {
  const auto known = codes_.find(code);
  return known == codes_.end() ? nullptr : &known->second;
}

}  // namespace lockstep::stacks
