// Unpacks gzip with zlib.
#include "http/gunzip.h"

#include <fmt/core.h>

#include <zlib.h>

#include <array>
#include <climits>

namespace lockstep::http {
namespace {

// zlib's way to ask for the gzip format only, not for raw or zlib streams.
constexpr int kGzipOnly = 16 + MAX_WBITS;

// zlib's state for one text.
class Inflater {
 public:
  explicit Inflater(std::string_view packed) {
    // zlib never writes through next_in.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    LOCKSTEP_CHECK(inflateInit2(&stream_, kGzipOnly) == Z_OK);  // NOLINT: zlib's macro
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends the next piece. Returns true at the end of the text.
  Result<bool> step(std::string& plain) {
    stream_.next_out = piece_.data();
    stream_.avail_out = static_cast<uInt>(piece_.size());
    // zlib checks the length and the checksum at the end, so a damaged answer is an error here.
    const int result = inflate(&stream_, Z_NO_FLUSH);
    plain.append(reinterpret_cast<const char*>(piece_.data()), piece_.size() - stream_.avail_out);
    if (result == Z_STREAM_END) {
      if (stream_.avail_in == 0) return true;
      inflateReset(&stream_);  // gzip members may follow each other
      return false;
    }
    if (result == Z_OK) return false;
    return fail(Errc::corrupt, result == Z_BUF_ERROR ? "the packed answer is cut short"
                                                     : "the packed answer is not gzip");
  }

 private:
  z_stream stream_{};
  std::array<Bytef, 16 << 10> piece_{};
};

}  // namespace

Result<std::string> gunzip(std::string_view packed, std::size_t limit) {
  if (packed.size() > UINT_MAX) return fail(Errc::corrupt, "the packed answer is too large");
  Inflater inflater(packed);
  std::string plain;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const bool done, inflater.step(plain));
    // Check after each piece: a small answer may unpack to gigabytes.
    if (plain.size() > limit)
      return fail(Errc::corrupt, fmt::format("the answer unpacks to more than {} bytes", limit));
    if (done) return plain;
  }
}

std::string gunzip_start(std::string_view packed, std::size_t most) {
  Inflater inflater(packed.substr(0, UINT_MAX));
  std::string plain;
  while (plain.size() < most) {
    const auto done = inflater.step(plain);
    if (!done || *done) break;
  }
  if (plain.size() > most) plain.resize(most);
  return plain;
}

}  // namespace lockstep::http
