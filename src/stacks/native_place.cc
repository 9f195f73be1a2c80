#include "stacks/native_place.h"

#include "stacks/native_point.h"
#include "stacks/native_symbols.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kMostStack = 32'768;  // bytes, from the innermost function on
constexpr std::size_t kMostCandidates = 512;
constexpr std::size_t kPage = 4'096;
constexpr std::size_t kMostKnown = 20'000;

bool is_code(const Mapping* mapping) {
  return mapping != nullptr && mapping->code && mapping->image != 0;
}

std::string note_of(const NativeSymbol& symbol) {
  return fmt::format(" ({}{})", symbol.inside ? "" : "near ", short_name(symbol.name));
}

// The words of a stack up to the end of its mapping, as far as they are readable.
std::vector<Address> read_stack(Memory& memory, Address from, Address end) {
  std::vector<Address> words;
  end = std::min(end, from + kMostStack);
  for (Address at = from; at + sizeof(Address) <= end;) {
    // Page by page: an unreadable page then costs only the words behind it.
    const Address stop = std::min<Address>(end, at - at % kPage + kPage);
    std::vector<Address> page((stop - at) / sizeof(Address));
    if (page.empty() || !memory.read(at, std::as_writable_bytes(std::span(page)))) break;
    words.insert(words.end(), page.begin(), page.end());
    at = stop;
  }
  return words;
}

}  // namespace

void PlaceNames::find(Memory& memory, const std::vector<Mapping>& mappings,
                      std::span<const NativePlace> places) {
  std::map<Address, std::vector<Address>> wanted;  // by the start of their image
  for (const NativePlace& place : places) {
    const Mapping* mapping = mapping_at(mappings, place.inside);
    if (is_code(mapping) && !mapping->far &&
        !known_.contains({mapping->file, place.inside - mapping->image}))
      wanted[mapping->image].push_back(place.inside);
  }
  for (const auto& [image, addresses] : wanted) {
    const auto symbols = symbols_at(memory, image, addresses);
    if (!symbols) continue;
    for (std::size_t i = 0; i < addresses.size() && known_.size() < kMostKnown; ++i)
      // Keep an address without a symbol, too, or each look would search the library again.
      known_[{mapping_at(mappings, addresses[i])->file, addresses[i] - image}] =
          (*symbols)[i] ? note_of(*(*symbols)[i]) : std::string();
  }
}

std::string PlaceNames::text(const std::vector<Mapping>& mappings, const NativePlace& place) const {
  const Mapping* mapping = mapping_at(mappings, place.inside);
  if (!is_code(mapping)) return {};
  const auto known = known_.find({mapping->file, place.inside - mapping->image});
  return fmt::format("{}+{:#x}{}", mapping->name, place.at - mapping->image,
                     known == known_.end() ? std::string() : known->second);
}

std::vector<Address> return_addresses(Memory& memory, const std::vector<Mapping>& mappings,
                                      Address stack, std::size_t most) {
  const Mapping* mapping = mapping_at(mappings, stack);
  if (mapping == nullptr || stack % sizeof(Address) != 0) return {};
  std::vector<Address> candidates;
  for (const Address word : read_stack(memory, stack, mapping->end)) {
    const Mapping* code = mapping_at(mappings, word);
    if (is_code(code) && !code->far && word - code->start >= kCallBytes &&
        candidates.size() < kMostCandidates)
      candidates.push_back(word);
  }
  std::vector<std::array<std::byte, kCallBytes>> codes(candidates.size());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    pieces.push_back({candidates[i] - kCallBytes, codes[i]});
  const std::size_t read = memory.read_pieces(pieces);
  std::vector<Address> found;
  for (std::size_t i = 0; i < read && found.size() < most; ++i)
    if (ends_with_call(codes[i]) && (found.empty() || found.back() != candidates[i]))
      found.push_back(candidates[i]);
  return found;
}

}  // namespace lockstep::stacks
