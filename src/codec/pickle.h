// A restricted reader and writer of Python pickles: plain values, instances given as class and
// attributes, and calls given as callable and arguments. Nothing is ever executed: a class or
// callable is only a name, and must be on the caller's list. Knows nothing of who wrote the bytes.
#pragma once

#include "base/error.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::codec {

struct PickleValue;
// Immutable; one value may stand in several places, as in Python. Never null in what the reader
// gives out, and never in a circle.
using Pickled = std::shared_ptr<const PickleValue>;

struct PickleGlobal {
  std::string module;
  std::string name;
  auto operator<=>(const PickleGlobal&) const = default;
};

struct PickleValue {
  enum class Kind { none, boolean, integer, text, bytes, tuple, dict, set, global, object, call };

  Kind kind = Kind::none;
  std::int64_t number = 0;  // boolean (0, 1), integer
  std::string text = {};    // text (UTF-8), bytes, name of a global
  std::string module = {};  // of a global
  // tuple, set: the items. dict: key, value, key, value, in the order written, repeated keys
  // included. object: class, arguments (a tuple), then name, value of its attributes as in a dict.
  // call: callable, arguments (a tuple).
  std::vector<Pickled> items = {};

  bool is(Kind wanted) const { return kind == wanted; }
  bool is(const PickleGlobal& global) const {
    return kind == Kind::global && text == global.name && module == global.module;
  }
};

struct PickleLimits {
  std::size_t max_bytes = 1U << 20;
  // Of the value written out as a tree, that is with shared parts counted wherever they stand: any
  // walk over it ends.
  std::size_t max_items = 1U << 18;
  std::size_t max_depth = 32;
};

// Protocols 2 to 5, of these only the operations that plain values, sets, instances and calls need
// (no lists, floats, extensions or persistent ids); integers that fit 64 bits. Everything else is
// Errc::corrupt, with the offset and the operation in the text.
Result<Pickled> read_pickle(std::string_view bytes, std::span<const PickleGlobal> allowed,
                            const PickleLimits& limits = {});

// Protocol 4, without frames. Values that stand in several places are written once; so are equal
// texts and globals. Fails for what the reader above would not take back.
Result<std::string> write_pickle(const Pickled& value, const PickleLimits& limits = {});

// Makers, for those who write.
Pickled pickle_none();
Pickled pickle_bool(bool value);
Pickled pickle_int(std::int64_t value);
Pickled pickle_text(std::string_view utf8);
Pickled pickle_bytes(std::string_view bytes);
Pickled pickle_global(const PickleGlobal& global);
Pickled pickle_items(PickleValue::Kind kind, std::vector<Pickled> items);  // the others

}  // namespace lockstep::codec
