// Building blocks of framed protocols. The frames of a protocol are a std::variant. A frame is the
// u32 length of the rest, a u8 (its position in the variant, from 1) and its fields. The same calls
// write and read a field, so the two directions cannot differ. Little-endian. Texts and lists begin
// with a u32 count.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::codec::wire {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

inline bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

class Writer {
 public:
  static constexpr bool kReads = false;
  explicit Writer(std::string& out) : out_(out) {}

  template <class T>
  void number(const T& value) {
    auto bits = static_cast<std::uint64_t>(static_cast<Unsigned<T>>(value));
    for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8)
      out_.push_back(static_cast<char>(bits & 0xFF));
  }
  void flag(const bool& value) { number<std::uint8_t>(value ? 1 : 0); }
  template <class T>
  void choice(const T& value, T /*last*/) {
    number(static_cast<std::uint8_t>(value));
  }
  template <class T>
  void within(const T& value, std::int64_t /*least*/, std::int64_t /*most*/) {
    number(value);
  }
  template <std::size_t N>
  void block(const std::array<std::uint8_t, N>& value) {
    out_.append(value.begin(), value.end());
  }
  void text(const std::string& value, std::size_t most) {
    const std::size_t size = std::min(value.size(), most);
    number(static_cast<std::uint32_t>(size));
    out_.append(value, 0, size);
  }
  // Writes one line of text for users, with control bytes replaced by blanks.
  void line(const std::string& value, std::size_t most) {
    std::string clean = value.substr(0, most);
    std::replace_if(clean.begin(), clean.end(), is_control, ' ');
    text(clean, most);
  }
  void skip() {}
  template <class T, class Each>
  void list(const std::vector<T>& values, std::size_t most, Each each) {
    const std::size_t size = std::min(values.size(), most);
    number(static_cast<std::uint32_t>(size));
    for (std::size_t i = 0; i < size; ++i)
      each(*this, values[i]);
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool good() const { return good_ && bytes_.empty(); }

  template <class T>
  void number(T& value) {
    std::uint64_t bits = 0;
    const std::string_view raw = take(sizeof(T));
    for (std::size_t i = raw.size(); i-- > 0;)
      bits = bits << 8 | static_cast<std::uint8_t>(raw[i]);
    value = static_cast<T>(static_cast<Unsigned<T>>(bits));
  }
  void flag(bool& value) {
    std::uint8_t byte = 0;
    number(byte);
    require(byte <= 1);
    value = byte == 1;
  }
  template <class T>
  void choice(T& value, T last) {
    std::uint8_t byte = 0;
    number(byte);
    require(byte <= static_cast<std::uint8_t>(last));
    if (good_) value = static_cast<T>(byte);
  }
  template <class T>
  void within(T& value, std::int64_t least, std::int64_t most) {
    number(value);
    require(static_cast<std::int64_t>(value) >= least && static_cast<std::int64_t>(value) <= most);
  }
  template <std::size_t N>
  void block(std::array<std::uint8_t, N>& value) {
    const std::string_view raw = take(N);
    std::copy(raw.begin(), raw.end(), value.begin());
  }
  void text(std::string& value, std::size_t most) {
    std::uint32_t size = 0;
    number(size);
    require(size <= most);
    value = take(good_ ? size : 0);
  }
  void line(std::string& value, std::size_t most) {
    text(value, most);
    require(std::none_of(value.begin(), value.end(), is_control));
  }
  // Skips the rest of the frame.
  void skip() { bytes_ = {}; }
  template <class T, class Each>
  void list(std::vector<T>& values, std::size_t most, Each each) {
    std::uint32_t size = 0;
    number(size);
    // Every item has at least one byte, so a false count causes no more work than the bytes
    // received.
    require(size <= most && size <= bytes_.size());
    for (std::uint32_t i = 0; i < size && good_; ++i)
      each(*this, values.emplace_back());
  }

 private:
  void require(bool fact) { good_ = good_ && fact; }
  std::string_view take(std::size_t size) {
    require(size <= bytes_.size());
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool good_ = true;
};

inline constexpr std::size_t kLengthBytes = 4;

// fields(writer or reader, frame) describes the fields of each frame.
template <class Frame, class Fields>
void put_frame(std::string& out, const Frame& frame, Fields fields) {
  const std::size_t start = out.size();
  out.append(kLengthBytes, '\0');
  out.push_back(static_cast<char>(frame.index() + 1));
  Writer writer(out);
  std::visit([&](const auto& content) { fields(writer, content); }, frame);
  std::string length;
  Writer(length).number(static_cast<std::uint32_t>(out.size() - start - kLengthBytes));
  out.replace(start, kLengthBytes, length);
}

// Parses a frame without its length. nullopt: invalid.
template <class Frame, std::size_t I = 0, class Fields>
std::optional<Frame> parse_frame(std::string_view content, Fields fields) {
  if constexpr (I < std::variant_size_v<Frame>) {
    if (content.empty()) return std::nullopt;
    if (static_cast<std::uint8_t>(content.front()) != I + 1)
      return parse_frame<Frame, I + 1>(content, fields);
    std::variant_alternative_t<I, Frame> frame;
    Reader reader(content.substr(1));
    fields(reader, frame);
    if (!reader.good()) return std::nullopt;
    return Frame(std::move(frame));
  } else {
    return std::nullopt;
  }
}

// Cuts a stream of bytes, in chunks of any size, into frames.
class FrameCutter {
 public:
  enum class Step { more, frame, bad_length };
  // Takes bytes from the front of `chunk`. more: the chunk is used up. bad_length: the frame is
  // empty or longer than `most`.
  Step next(std::string_view& chunk, std::size_t most) {
    if (std::exchange(whole_, false)) pending_.clear();
    if (!want(kLengthBytes, chunk)) return Step::more;
    Reader(std::string_view(pending_).substr(0, kLengthBytes)).number(length_);
    if (length_ == 0 || length_ > most) return Step::bad_length;
    if (!want(kLengthBytes + length_, chunk)) return Step::more;
    whole_ = true;
    return Step::frame;
  }
  // The content of the frame that next() has found, until the next call.
  std::string_view content() const { return std::string_view(pending_).substr(kLengthBytes); }
  std::uint32_t length() const { return length_; }

 private:
  bool want(std::size_t size, std::string_view& chunk) {
    const std::size_t taken = std::min(size - std::min(size, pending_.size()), chunk.size());
    pending_.append(chunk.substr(0, taken));
    chunk.remove_prefix(taken);
    return pending_.size() >= size;
  }

  std::string pending_;
  std::uint32_t length_ = 0;
  bool whole_ = false;
};

}  // namespace lockstep::codec::wire
