// Searches a table of dynamic symbols.
#include "stacks/native_symbols.h"

#include "stacks/elf_image.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kPart = 4'096;  // symbols that are read at once
constexpr std::size_t kMostAliases = 4;
constexpr Address kPage = 4'096;

// The function before an address, by the symbols that were read so far. A function may have several
// names.
struct Nearest {
  Address value = 0;
  std::uint64_t size = 0;
  std::array<std::uint32_t, kMostAliases> names{};
  std::size_t count = 0;
};

bool is_function(const Elf64_Sym& symbol) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_value != 0;
}

void consider(const Elf64_Sym& symbol, Nearest& nearest) {
  if (nearest.count == 0 || symbol.st_value > nearest.value) {
    nearest = {.value = symbol.st_value, .size = symbol.st_size, .names = {}, .count = 0};
  } else if (symbol.st_value < nearest.value) {
    return;
  }
  nearest.size = std::max<std::uint64_t>(nearest.size, symbol.st_size);
  if (nearest.count < kMostAliases) nearest.names[nearest.count++] = symbol.st_name;
}

// Reads up to the end of the text. Its page may be the last one that is mapped. nullopt:
// unreadable.
std::optional<std::string> text_at(Memory& memory, Address at) {
  std::string text;
  while (text.size() < kMostSymbolName) {
    std::array<char, kMostSymbolName> bytes{};
    const std::size_t size = std::min<Address>(kMostSymbolName - text.size(), kPage - at % kPage);
    if (!memory.read(at, std::as_writable_bytes(std::span(bytes)).first(size))) return std::nullopt;
    const std::string_view read(bytes.data(), size);
    text += read.substr(0, read.find('\0'));
    if (read.find('\0') != std::string_view::npos) return text;
    at += size;
  }
  return text;
}

// Of "__poll" and "poll", people know the second. nullopt: not all are readable.
std::optional<std::string> best_name(Memory& memory, Address names, const Nearest& nearest) {
  std::string best;
  const auto rank = [](const std::string& name) {
    return std::pair(std::min(name.find_first_not_of('_'), name.size()), name.size());
  };
  for (std::size_t i = 0; i < nearest.count; ++i) {
    auto name = text_at(memory, names + nearest.names[i]);
    if (!name) return std::nullopt;
    if (!name->empty() && (best.empty() || rank(*name) < rank(best))) best = std::move(*name);
  }
  return best;
}

// Reads all symbols once: the table is ordered by hash. offsets: sorted, as the symbols count.
// nullopt: not all are readable, and one of the others may be nearer.
std::optional<std::vector<Nearest>> search(Memory& memory, const DynamicSymbols& table,
                                           const std::vector<Address>& offsets) {
  std::vector<Nearest> found(offsets.size());
  const std::size_t count = count_symbols(memory, table);
  // A table that was cut off may lack the nearest symbol.
  if (count == 0 || count == kMostSymbols) return std::nullopt;
  for (std::size_t done = 0; done < count; done += kPart) {
    const auto part = read_table<Elf64_Sym>(memory, table.symbols + done * sizeof(Elf64_Sym),
                                            std::min(kPart, count - done));
    if (!part) return std::nullopt;
    for (const Elf64_Sym& symbol : *part) {
      if (!is_function(symbol)) continue;
      const auto behind = std::lower_bound(offsets.begin(), offsets.end(), symbol.st_value);
      if (behind != offsets.end())
        consider(symbol, found[static_cast<std::size_t>(behind - offsets.begin())]);
    }
  }
  // A function before one address may be the last one before the next address, too.
  for (std::size_t i = 1; i < found.size(); ++i)
    if (found[i - 1].value > found[i].value) found[i] = found[i - 1];
  return found;
}

}  // namespace

std::optional<std::vector<std::optional<NativeSymbol>>> symbols_at(
    Memory& process, Address start, std::span<const Address> addresses) {
  std::vector<std::optional<NativeSymbol>> symbols(addresses.size());
  const auto image = read_image(process, start, start);
  const auto table = image ? dynamic_symbols(process, *image) : std::nullopt;
  if (!table) return std::nullopt;
  std::vector<Address> offsets;
  for (const Address address : addresses)
    offsets.push_back(address - image->bias);
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  const auto found = search(process, *table, offsets);
  if (!found) return std::nullopt;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Address offset = addresses[i] - image->bias;
    const auto at = std::lower_bound(offsets.begin(), offsets.end(), offset) - offsets.begin();
    const Nearest& nearest = (*found)[static_cast<std::size_t>(at)];
    if (nearest.count == 0) continue;
    auto name = best_name(process, table->names, nearest);
    if (!name) return std::nullopt;
    if (!name->empty()) symbols[i] = {std::move(*name), offset - nearest.value < nearest.size};
  }
  return symbols;
}

}  // namespace lockstep::stacks
