// Reads objects and recodes their text.
#include "stacks/objects.h"

#include <algorithm>
#include <cstring>

namespace lockstep::stacks {
namespace {

constexpr std::array<std::string_view, 3> kTypeNames = {"code", "str", "bytes"};

// The bits of PyASCIIObject.state.
struct TextState {
  unsigned width;  // of a character in bytes: 1, 2, 4
  bool compact;    // the characters follow the object
  bool ascii;
};

TextState text_state(std::uint32_t state, std::uint32_t kind_bit) {
  const std::uint32_t bits = state >> kind_bit;
  return {bits & 7U, (bits >> 3U & 1U) != 0, (bits >> 4U & 1U) != 0};
}

void append_utf8(std::uint32_t c, std::string& to) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = kReplacement;
  const auto tail = [&](unsigned shift) {
    to += static_cast<char>(0x80U | ((c >> shift) & 0x3fU));
  };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xc0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    to += static_cast<char>(0xe0U | (c >> 12U));
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xf0U | (c >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::string to_utf8(std::span<const std::byte> characters, std::size_t width) {
  std::string made;
  for (std::size_t i = 0; i + width <= characters.size(); i += width) {
    std::uint32_t c = 0;
    std::memcpy(&c, characters.data() + i, width);
    append_utf8(c, made);
  }
  return made;
}

bool Objects::is(Memory& memory, Address type, ObjectType wanted) {
  const auto which = static_cast<std::size_t>(wanted);
  if (type == 0) return false;
  if (known_[which] != 0) return known_[which] == type;
  const std::string_view name = kTypeNames[which];
  const auto name_at = memory.value<Address>(type + layout_->type_name);
  std::array<char, 8> text{};
  if (!name_at ||
      !memory.read(*name_at, std::as_writable_bytes(std::span(text)).first(name.size() + 1)))
    return false;
  if (std::string_view(text.data(), name.size()) != name || text[name.size()] != '\0') return false;
  // These types are static in CPython: the address stays the same while the process lives.
  known_[which] = type;
  return true;
}

std::optional<std::string> Objects::text(Memory& memory, Address at, std::size_t limit) {
  ObjectCopy object;
  if (!object.load(memory, at, layout_->text_compact + sizeof(Address))) {
    // The object may be short, and the last one of its mapping.
    if (!object.load(memory, at, layout_->text_ascii)) return {};
  }
  if (!is(memory, object.pointer(layout_->type), ObjectType::str)) return {};
  const TextState state =
      text_state(object.get<std::uint32_t>(layout_->text_state), layout_->text_kind_bit);
  if (state.width != 1 && state.width != 2 && state.width != 4) return {};
  Address characters = at + (state.ascii ? layout_->text_ascii : layout_->text_compact);
  // Strings made by old interfaces (until 3.11) have their characters elsewhere.
  if (!state.compact) characters = object.pointer(layout_->text_compact);
  const auto length = std::min<std::uint64_t>(object.pointer(layout_->text_length), limit);
  std::vector<std::byte> bytes(length * state.width);
  if (!bytes.empty() && !memory.read(characters, bytes)) return {};
  return to_utf8(bytes, state.width);
}

std::optional<std::uint64_t> Objects::bytes_size(Memory& memory, Address at) {
  ObjectCopy object;
  if (!object.load(memory, at, layout_->bytes_data) ||
      !is(memory, object.pointer(layout_->type), ObjectType::bytes))
    return {};
  return object.get<std::uint64_t>(layout_->size);
}

std::optional<std::vector<std::uint8_t>> Objects::bytes(Memory& memory, Address at,
                                                        std::size_t limit) {
  const auto size = bytes_size(memory, at);
  if (!size || *size > limit) return {};
  std::vector<std::uint8_t> made(*size);
  if (!made.empty() &&
      !memory.read(at + layout_->bytes_data, std::as_writable_bytes(std::span(made))))
    return {};
  return made;
}

}  // namespace lockstep::stacks
