#include "peer/length.h"

#include "codec/wire.h"

#include <cstdint>

namespace lockstep::peer {

std::string with_length(std::string_view text) {
  std::string out;
  codec::wire::Writer(out).number(static_cast<std::uint32_t>(text.size()));
  out += text;
  return out;
}

std::optional<std::size_t> length_in(std::string_view head, std::size_t most) {
  std::uint32_t size = 0;
  codec::wire::Reader reader(head);
  reader.number(size);
  if (!reader.good() || size > most) return std::nullopt;
  return size;
}

}  // namespace lockstep::peer
