// Reads and writes the TCPStore protocol. Every message is an opcode and a fixed row of fields, so
// one table of layouts drives scanning, decoding and encoding.
#include "store/wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace lockstep::store {
namespace {

enum class Field : std::uint8_t { end, key, value, i64, u32, key_list, pair_list };

struct Layout {
  std::string_view name;
  std::uint8_t in_d;  // opcode in dialect D
  std::uint8_t in_a;  // opcode in dialect A, or kNone
  std::array<Field, 4> fields;
};

constexpr std::uint8_t kNone = 0xff;
using enum Field;

// Indexed by Op. In dialect A, opcodes 9, 10 and 11 follow PyTorch 2.1, and 7 and 8 follow 1.13.
constexpr std::array<Layout, kOpCount> kLayouts = {{
    {"VALIDATE", 0, kNone, {u32}},
    {"SET", 1, 0, {key, value}},
    {"COMPARE_SET", 2, 1, {key, value, value}},
    {"GET", 3, 2, {key}},
    {"ADD", 4, 3, {key, i64}},
    {"CHECK", 5, 4, {key_list}},
    {"WAIT", 6, 5, {key_list}},
    {"GETNUMKEYS", 7, 6, {}},
    {"WATCH_KEY", kNone, 7, {key}},
    {"DELETE_KEY", 8, 8, {key}},
    {"APPEND", 9, kNone, {key, value}},
    {"MULTI_GET", 10, 9, {key_list}},
    {"MULTI_SET", 11, 10, {pair_list}},
    {"CANCEL_WAIT", 12, 11, {}},
    {"PING", 13, kNone, {u32}},
    {"QUEUE_PUSH", 14, kNone, {key, value}},
    {"QUEUE_POP", 15, kNone, {key}},
    {"QUEUE_LEN", 16, kNone, {key}},
    {"LIST_KEYS", 17, kNone, {}},
    {"BARRIER", 18, kNone, {key, i64}},
}};

constexpr const Layout& layout(Op op) {
  return kLayouts[static_cast<std::size_t>(op)];
}

using OpTable = std::array<std::uint8_t, 256>;  // opcode -> Op, or kNone
constexpr OpTable make_table(bool d) {
  OpTable table{};
  table.fill(kNone);
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const std::uint8_t code = d ? kLayouts[i].in_d : kLayouts[i].in_a;
    if (code != kNone) table[code] = static_cast<std::uint8_t>(i);
  }
  return table;
}
constexpr OpTable kTableD = make_table(true);
constexpr OpTable kTableA = make_table(false);

// Free larger buffers once their message is done.
constexpr std::size_t kKeepBytes = 256;

// Returns the fields of a message, which scan() has found complete.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : at_(bytes.data()) {}
  std::uint32_t u32() { return load_u32(take(4)); }
  std::uint64_t u64() { return load_u64(take(8)); }
  std::string_view string() {
    const auto size = static_cast<std::size_t>(u64());
    return {take(size), size};
  }

 private:
  const char* take(std::size_t size) { return std::exchange(at_, at_ + size); }
  const char* at_;
};

}  // namespace

std::string_view op_name(Op op) {
  return layout(op).name;
}

std::optional<std::uint8_t> opcode(Dialect dialect, Op op) {
  const std::uint8_t code = dialect == Dialect::a ? layout(op).in_a : layout(op).in_d;
  if (code == kNone) return std::nullopt;
  return code;
}

// --- reading ---

RequestReader::Step RequestReader::next(std::string_view& chunk, Request& request) {
  if (spent_) forget_message();
  if (!error_.empty()) return Step::error;
  // The common case: whole requests in the chunk, decoded without a copy.
  if (pending_.empty()) {
    if (chunk.empty()) return Step::more;
    const Step step = scan(chunk);
    if (step == Step::request) {
      decode(chunk.substr(0, scan_.pos), request);
      chunk.remove_prefix(std::exchange(scan_, {}).pos);
    } else if (step == Step::more) {
      pending_.assign(std::exchange(chunk, {}));
    }
    return step;
  }
  // Never take more than the message is known to need, so that pending_ ends where the message
  // ends.
  while (true) {
    const std::size_t take = std::min(scan_.need - pending_.size(), chunk.size());
    pending_.append(chunk.substr(0, take));
    chunk.remove_prefix(take);
    if (pending_.size() < scan_.need) return Step::more;
    const Step step = scan(pending_);
    if (step == Step::more) continue;
    if (step == Step::request) {
      decode(pending_, request);
      // The request points into pending_, so the message stays until the next call.
      spent_ = true;
    }
    return step;
  }
}

void RequestReader::forget_message() {
  spent_ = false;
  scan_ = {};
  if (pending_.capacity() > kKeepBytes) {
    pending_ = {};
  } else {
    pending_.clear();
  }
  if (items_.capacity() > kKeepBytes) items_ = {};
}

RequestReader::Step RequestReader::broken(std::string text) {
  error_ = std::move(text);
  pending_ = {};
  return Step::error;
}

// Returns whether the message's next `more` bytes are there. Otherwise notes how many are needed.
bool RequestReader::have(std::string_view bytes, std::size_t more) {
  scan_.need = scan_.pos + more;
  return bytes.size() >= scan_.need;
}

RequestReader::Step RequestReader::scan(std::string_view bytes) {
  if (scan_.pos == 0) {
    const Step step = scan_op(bytes);
    if (step != Step::request) return step;
  }
  const auto& fields = layout(scan_.op).fields;
  for (; fields[scan_.field] != Field::end; ++scan_.field) {
    const Field field = fields[scan_.field];
    Step step = Step::request;
    if (field == key || field == value) {
      step = scan_string(bytes, field == key);
    } else if (field == key_list || field == pair_list) {
      step = scan_list(bytes, field == pair_list);
    } else {
      const std::size_t size = field == u32 ? 4 : 8;
      if (!have(bytes, size)) return Step::more;
      scan_.pos += size;
    }
    if (step != Step::request) return step;
  }
  return Step::request;
}

RequestReader::Step RequestReader::scan_op(std::string_view bytes) {
  if (dialect_ == Dialect::unknown) return scan_greeting(bytes);
  const auto code = static_cast<std::uint8_t>(bytes[0]);
  const std::uint8_t op = dialect_ == Dialect::d ? kTableD[code] : kTableA[code];
  if (op == kNone) return broken(fmt::format("unknown operation {}", code));
  scan_.op = static_cast<Op>(op);
  if (scan_.op == Op::validate) return broken("a second VALIDATE");
  scan_.pos = 1;
  return Step::request;
}

// Reads the first message. A 0 begins VALIDATE in D and SET in A. The next four bytes tell which:
// they are D's magic, or the low half of a key's length in A.
RequestReader::Step RequestReader::scan_greeting(std::string_view bytes) {
  if (bytes[0] != 0) {
    dialect_ = Dialect::a;
    return scan_op(bytes);
  }
  if (!have(bytes, 5)) return Step::more;
  const std::uint32_t word = load_u32(bytes.data() + 1);
  if (word == kMagic) {
    dialect_ = Dialect::d;
    scan_.op = Op::validate;
    scan_.pos = 1;
    return Step::request;
  }
  // As a key length this word would be absurd. Another program has connected.
  if (word > limits_->max_key_bytes) return broken("the first bytes are not a TCPStore greeting");
  dialect_ = Dialect::a;
  return scan_op(bytes);
}

RequestReader::Step RequestReader::scan_string(std::string_view bytes, bool is_key) {
  if (!have(bytes, 8)) return Step::more;
  const std::uint64_t size = load_u64(bytes.data() + scan_.pos);
  const std::size_t limit = is_key ? limits_->max_key_bytes : limits_->max_value_bytes;
  if (size > limit) {
    return broken(fmt::format("{} of {} bytes in {}, the limit is {}", is_key ? "key" : "value",
                              size, op_name(scan_.op), limit));
  }
  // Check the sum, too: many fields within their own limits could still exceed the message's limit.
  if (size > limits_->max_message_bytes - std::min(scan_.pos + 8, limits_->max_message_bytes)) {
    return broken(
        fmt::format("{} of more than {} bytes", op_name(scan_.op), limits_->max_message_bytes));
  }
  if (!have(bytes, 8 + static_cast<std::size_t>(size))) return Step::more;
  scan_.pos = scan_.need;
  return Step::request;
}

RequestReader::Step RequestReader::scan_list(std::string_view bytes, bool pairs) {
  if (!scan_.list_open) {
    if (!have(bytes, 8)) return Step::more;
    const std::uint64_t count = load_u64(bytes.data() + scan_.pos);
    if (count > limits_->max_keys) {
      return broken(fmt::format("{} keys in {}, the limit is {}", count, op_name(scan_.op),
                                limits_->max_keys));
    }
    scan_.left = pairs ? 2 * count : count;
    scan_.list_open = true;
    scan_.pos += 8;
  }
  for (; scan_.left > 0; --scan_.left) {
    // Pairs alternate key, value. An even number of remaining items means that a key is next.
    const bool is_key = !pairs || scan_.left % 2 == 0;
    const Step step = scan_string(bytes, is_key);
    if (step != Step::request) return step;
  }
  return Step::request;
}

void RequestReader::decode(std::string_view bytes, Request& request) {
  request.op = scan_.op;
  Cursor cursor(bytes.substr(1));
  // COMPARE_SET has two values. The first one is `expected`.
  bool first = true;
  for (const Field field : layout(request.op).fields) {
    if (field == Field::end) return;
    if (field == key) {
      request.key = cursor.string();
    } else if (field == value) {
      (std::exchange(first, false) ? request.value : request.desired) = cursor.string();
    } else if (field == i64) {
      request.number = static_cast<std::int64_t>(cursor.u64());
    } else if (field == u32) {
      request.number = cursor.u32();
    } else {
      const auto count = static_cast<std::size_t>(cursor.u64()) * (field == pair_list ? 2 : 1);
      items_.clear();
      for (std::size_t i = 0; i < count; ++i)
        items_.push_back(cursor.string());
      request.items = items_;
    }
  }
}

// --- writing ---

namespace {
template <class T>
void put_raw(std::string& out, T value) {
  // PyTorch sends raw host integers, little-endian in practice.
  static_assert(std::endian::native == std::endian::little,
                "the protocol is the host's byte order");
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}
}  // namespace

void put_u8(std::string& out, std::uint8_t value) {
  out.push_back(static_cast<char>(value));
}
void put_u32(std::string& out, std::uint32_t value) {
  put_raw(out, value);
}
void put_u64(std::string& out, std::uint64_t value) {
  put_raw(out, value);
}
void put_i64(std::string& out, std::int64_t value) {
  put_raw(out, value);
}

void put_string(std::string& out, std::string_view text) {
  put_u64(out, text.size());
  out.append(text);
}

std::uint32_t load_u32(const char* bytes) {
  std::uint32_t number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

std::uint64_t load_u64(const char* bytes) {
  std::uint64_t number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

Status put_request(std::string& out, Dialect dialect, const Request& request) {
  const auto code = opcode(dialect, request.op);
  if (!code) {
    return fail(Errc::invalid_input,
                fmt::format("the older TCPStore protocol has no {}", op_name(request.op)));
  }
  put_u8(out, *code);
  bool first = true;
  for (const Field field : layout(request.op).fields) {
    if (field == Field::end) break;
    if (field == key) {
      put_string(out, request.key);
    } else if (field == value) {
      put_string(out, std::exchange(first, false) ? request.value : request.desired);
    } else if (field == i64) {
      put_i64(out, request.number);
    } else if (field == u32) {
      put_u32(out, static_cast<std::uint32_t>(request.number));
    } else {
      put_u64(out, field == pair_list ? request.items.size() / 2 : request.items.size());
      for (const auto item : request.items)
        put_string(out, item);
    }
  }
  return {};
}

std::string greeting(Dialect dialect, std::uint32_t nonce) {
  std::string out;
  if (dialect == Dialect::a) return out;
  put_u8(out, 0);
  put_u32(out, kMagic);
  put_u8(out, layout(Op::ping).in_d);
  put_u32(out, nonce);
  return out;
}

}  // namespace lockstep::store
