// The FileStore reader on any bytes: cut into pieces anywhere it says the same, and it holds no
// more than its limits allow.
#include "base/error.h"
#include "rendezvous/file_store/file_store_codec.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace {
using namespace lockstep;              // NOLINT
using namespace lockstep::rendezvous;  // NOLINT

constexpr file_store::FileStoreLimits kSmall{
    .max_key_bytes = 24, .max_value_bytes = 64, .max_keys = 6, .max_total_bytes = 200};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  file_store::FileStoreReader whole(kSmall);
  const auto fed = whole.feed(bytes);
  LOCKSTEP_CHECK(fed.has_value() || fed.error().code == Errc::corrupt);
  LOCKSTEP_CHECK(whole.size() <= kSmall.max_keys);
  LOCKSTEP_CHECK(whole.taken() <= size);

  // In pieces, and after one of them what is not whole is read again.
  const std::size_t step = size == 0 ? 1 : 1 + data[0] % 7;
  const std::size_t again = size / 2;
  file_store::FileStoreReader pieces(kSmall);
  Status last;
  for (std::size_t at = 0; at < size && last; at += step) {
    last = pieces.feed(bytes.substr(at, step));
    if (!last || at + step < again || at >= again) continue;
    pieces.drop_rest();
    const auto taken = static_cast<std::size_t>(pieces.taken());
    const std::size_t end = std::min(at + step, size);
    last = pieces.feed(bytes.substr(taken, end - taken));
  }
  LOCKSTEP_CHECK(last.has_value() == fed.has_value());
  LOCKSTEP_CHECK(pieces.taken() == whole.taken());
  LOCKSTEP_CHECK(pieces.size() == whole.size());
  return 0;
}
