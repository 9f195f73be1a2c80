// The writing half of pickle.h, and the constructors of values.
#include "base/utf8.h"
#include "codec/pickle.h"
#include "codec/pickle_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

namespace lockstep::codec {
namespace {
using pickle::Op;
using Kind = PickleValue::Kind;

constexpr std::size_t kBatch = 1000;  // items per MARK, as in Python

class Writer {
 public:
  explicit Writer(const PickleLimits& limits) : limits_(limits) {}
  Status write(const Pickled& value, std::size_t depth);
  std::string out;

  void op(Op op) { out += static_cast<char>(op); }

 private:
  struct Written {
    std::size_t index = 0;
    std::size_t size = 0;  // number of values, written out as a tree
  };
  Status write_new(const Pickled& value, std::size_t depth);
  void number(std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      out += static_cast<char>(value >> (8 * i) & 255U);
  }
  void integer(std::int64_t value);
  Status text(std::string_view text);
  Status global(const PickleValue& global);
  Status bytes(std::string_view bytes);
  Status tuple(const Pickled& value, std::size_t depth);
  Status instance(const Pickled& value, std::size_t depth);
  Status items(std::span<const Pickled> items, Op op, std::size_t depth);
  void get(std::size_t index);
  std::size_t memoize() {
    op(Op::memoize);
    return memoized_++;
  }
  static Failure cannot(std::string_view what) {
    return fail(Errc::invalid_input, fmt::format("cannot write as a pickle: {}", what));
  }

  const PickleLimits& limits_;
  std::size_t memoized_ = 0;
  std::size_t written_ = 0;
  // Texts and globals are compared by content, values by identity.
  std::unordered_map<const PickleValue*, Written> by_place_;
  std::map<std::string, std::size_t, std::less<>> texts_;
  std::map<PickleGlobal, std::size_t> globals_;
};

Status Writer::write(const Pickled& value, std::size_t depth) {
  if (!value) return cannot("no value");
  if (depth + 1 > limits_.max_depth) return cannot("too deep");
  const std::size_t before = written_;
  const auto found = by_place_.find(value.get());
  if (found != by_place_.end()) {
    get(found->second.index);
    written_ += found->second.size;
  } else {
    ++written_;
    LOCKSTEP_TRY(write_new(value, depth));
    // The size is known only after the value was written: a later reference adds the same size
    // again.
    if (const auto now = by_place_.find(value.get()); now != by_place_.end())
      now->second.size = written_ - before;
  }
  if (written_ > limits_.max_items || out.size() > limits_.max_bytes) return cannot("too large");
  return {};
}

Status Writer::write_new(const Pickled& value, std::size_t depth) {
  switch (value->kind) {
    case Kind::none:
      op(Op::none);
      return {};
    case Kind::boolean:
      op(value->number != 0 ? Op::newtrue : Op::newfalse);
      return {};
    case Kind::integer:
      integer(value->number);
      return {};
    case Kind::text:
      return text(value->text);
    case Kind::bytes:
      return bytes(value->text);
    case Kind::global:
      return global(*value);
    case Kind::tuple:
      return tuple(value, depth);
    case Kind::object:
    case Kind::call:
      return instance(value, depth);
    case Kind::list:
    case Kind::real:
      return cannot("a list or a float");
    case Kind::dict:
    case Kind::set:
      break;
  }
  const bool dict = value->is(Kind::dict);
  op(dict ? Op::empty_dict : Op::empty_set);
  // Memoize before filling, as Python does: an item may refer to its container.
  by_place_[value.get()].index = memoize();
  return items(value->items, dict ? Op::setitems : Op::additems, depth);
}

void Writer::integer(std::int64_t value) {
  if (value >= 0 && value <= 0xff) {
    op(Op::binint1);
    number(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value <= 0xffff) {
    op(Op::binint2);
    number(static_cast<std::uint64_t>(value), 2);
  } else if (value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max()) {
    op(Op::binint);
    number(static_cast<std::uint64_t>(value), 4);
  } else {
    op(Op::long1);
    // LONG1 may be shorter. Eight bytes are always right.
    number(8, 1);
    number(static_cast<std::uint64_t>(value), 8);
  }
}

Status Writer::text(std::string_view text) {
  if (const auto found = texts_.find(text); found != texts_.end()) {
    get(found->second);
    return {};
  }
  if (!is_utf8(text)) return cannot("text that is not UTF-8");
  if (text.size() > limits_.max_bytes) return cannot("too large");
  // The length field has one byte or four.
  op(text.size() < 256 ? Op::short_binunicode : Op::binunicode);
  number(text.size(), text.size() < 256 ? 1 : 4);
  out += text;
  texts_.emplace(text, memoize());
  return {};
}

Status Writer::bytes(std::string_view bytes) {
  // The reader accepts SHORT_BINBYTES only, which a datetime fits.
  if (bytes.size() > 255) return cannot("more than 255 bytes");
  op(Op::short_binbytes);
  number(bytes.size(), 1);
  out += bytes;
  return {};
}

Status Writer::global(const PickleValue& global) {
  PickleGlobal name{global.module, global.text};
  if (const auto found = globals_.find(name); found != globals_.end()) {
    get(found->second);
    return {};
  }
  // STACK_GLOBAL takes module and name from the stack.
  LOCKSTEP_TRY(text(name.module));
  LOCKSTEP_TRY(text(name.name));
  op(Op::stack_global);
  globals_.emplace(std::move(name), memoize());
  return {};
}

Status Writer::tuple(const Pickled& value, std::size_t depth) {
  constexpr Op kOps[] = {Op::empty_tuple, Op::tuple1, Op::tuple2, Op::tuple3};
  // The reader knows TUPLE1 to TUPLE3 only.
  if (value->items.size() > 3) return cannot("a tuple of more than 3");
  for (const Pickled& item : value->items)
    LOCKSTEP_TRY(write(item, depth + 1));
  op(kOps[value->items.size()]);
  // Python has a single empty tuple and never memoizes it.
  if (!value->items.empty()) by_place_[value.get()].index = memoize();
  return {};
}

Status Writer::instance(const Pickled& value, std::size_t depth) {
  const std::span<const Pickled> parts = value->items;
  const bool object = value->is(Kind::object);
  if (parts.size() < 2 || !parts[0] || !parts[0]->is(Kind::global) || !parts[1] ||
      !parts[1]->is(Kind::tuple) || (!object && parts.size() > 2))
    return cannot("an instance or call without class or arguments");
  LOCKSTEP_TRY(write(parts[0], depth + 1));
  LOCKSTEP_TRY(write(parts[1], depth + 1));
  op(object ? Op::newobj : Op::reduce);
  by_place_[value.get()].index = memoize();
  if (parts.size() == 2) return {};
  op(Op::empty_dict);
  for (std::size_t i = 2; i < parts.size(); i += 2) {
    if (!parts[i] || !parts[i]->is(Kind::text)) return cannot("an attribute without a name");
  }
  // BUILD takes the attributes of an instance as a dict.
  LOCKSTEP_TRY(items(parts.subspan(2), Op::setitems, depth));
  op(Op::build);
  return {};
}

Status Writer::items(std::span<const Pickled> items, Op filling, std::size_t depth) {
  const bool pairs = filling == Op::setitems;
  if (pairs && items.size() % 2 != 0) return cannot("a key without a value");
  for (std::size_t i = 0; i < items.size(); i += pairs ? 2 : 1) {
    if (items[i] && (items[i]->is(Kind::dict) || items[i]->is(Kind::set)))
      return cannot("a dict or set as a key");
  }
  while (!items.empty()) {
    const auto batch = items.first(std::min(items.size(), pairs ? 2 * kBatch : kBatch));
    op(Op::mark);
    for (const Pickled& item : batch)
      LOCKSTEP_TRY(write(item, depth + 1));
    op(filling);
    items = items.subspan(batch.size());
  }
  return {};
}

void Writer::get(std::size_t index) {
  op(index < 256 ? Op::binget : Op::long_binget);
  number(index, index < 256 ? 1 : 4);
}

Pickled make(PickleValue value) {
  return std::make_shared<const PickleValue>(std::move(value));
}

}  // namespace

Result<std::string> write_pickle(const Pickled& value, const PickleLimits& limits) {
  Writer writer(limits);
  writer.op(Op::proto);
  // Protocol 4, which every Python from 3.4 on reads.
  writer.out += '\4';
  LOCKSTEP_TRY(writer.write(value, 0));
  writer.op(Op::stop);
  if (writer.out.size() > limits.max_bytes)
    return fail(Errc::invalid_input, "cannot write as a pickle: too large");
  return std::move(writer.out);
}

Pickled pickle_none() {
  return make({});
}
Pickled pickle_bool(bool value) {
  return make({.kind = Kind::boolean, .number = value ? 1 : 0});
}
Pickled pickle_int(std::int64_t value) {
  return make({.kind = Kind::integer, .number = value});
}
Pickled pickle_text(std::string_view utf8) {
  return make({.kind = Kind::text, .text = std::string(utf8)});
}
Pickled pickle_bytes(std::string_view bytes) {
  return make({.kind = Kind::bytes, .text = std::string(bytes)});
}
Pickled pickle_global(const PickleGlobal& global) {
  return make({.kind = Kind::global, .text = global.name, .module = global.module});
}
Pickled pickle_items(Kind kind, std::vector<Pickled> items) {
  return make({.kind = kind, .items = std::move(items)});
}

}  // namespace lockstep::codec
