// A restricted reader and writer of Python pickles. Knows plain values, instances (class and
// attributes) and calls (callable and arguments). Never executes anything: a class or callable is
// only a name, and must be on the caller's list. Does not authenticate the sender.
#pragma once

#include "base/error.h"

#include <bit>
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
// An immutable value. A value may appear in several places, as in Python. The reader never returns
// a null pointer, or a value that contains itself.
using Pickled = std::shared_ptr<const PickleValue>;

struct PickleGlobal {
  std::string module;
  std::string name;
  auto operator<=>(const PickleGlobal&) const = default;
};

struct PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    text,
    bytes,
    tuple,
    dict,
    set,
    global,
    object,
    call,
    list,  // list and real: only with PickleLimits::lists
    real,
  };

  Kind kind = Kind::none;
  std::int64_t number = 0;  // boolean (0, 1), integer; real: the bits of the double
  std::string text = {};    // text (UTF-8), bytes, name of a global
  std::string module = {};  // module of a global
  // tuple, set, list: the items. dict: key, value, key, value, in the order written, including
  // repeated keys. object: class, arguments (a tuple), then name, value of each attribute as in a
  // dict. call: callable, arguments (a tuple).
  std::vector<Pickled> items = {};

  bool is(Kind wanted) const { return kind == wanted; }
  bool is(const PickleGlobal& global) const {
    return kind == Kind::global && text == global.name && module == global.module;
  }
};

struct PickleLimits {
  std::size_t max_bytes = 1U << 20;
  // The most values, counted as if the value were written out as a tree: a shared part counts in
  // each place. The limit thus bounds any walk over the value.
  std::size_t max_items = 1U << 18;
  std::size_t max_depth = 32;
  // Accepts also lists, floats, tuples of any size and numbered memos, as PyTorch's own pickler
  // writes them. The writer has none of these.
  bool lists = false;
};

// A pickle in the form in which it was read. All values are in one place, and their texts point
// into the bytes read, which must outlive the tree. Use the tree for a single look at thousands of
// values. To keep a value, use Pickled.
class PickleTree {
  struct Part {
    PickleValue::Kind kind = PickleValue::Kind::none;
    std::uint32_t first = 0;  // index of its items
    std::uint32_t size = 0;
    std::uint32_t room = 0;
    std::int64_t number = 0;
    std::string_view text = {};
    std::string_view module = {};
  };

 public:
  // Valid as long as its tree.
  class Value {
   public:
    bool is(PickleValue::Kind wanted) const { return part().kind == wanted; }
    bool is(const PickleGlobal& global) const {
      return is(PickleValue::Kind::global) && part().text == global.name &&
             part().module == global.module;
    }
    std::int64_t number() const { return part().number; }
    double real() const { return std::bit_cast<double>(part().number); }
    std::string_view text() const { return part().text; }
    // Items, in the form of PickleValue::items.
    std::size_t size() const { return part().size; }
    Value operator[](std::size_t i) const { return {*tree_, tree_->items_[part().first + i]}; }
    PickleValue::Kind kind() const { return part().kind; }
    std::string_view module() const { return part().module; }
    const void* place() const { return &part(); }  // identity of the value, equal in all its places
    // Makes a Pickled, which does not need the tree or the bytes.
    Pickled copy() const;

   private:
    friend class PickleTree;
    Value(const PickleTree& tree, std::uint32_t at) : tree_(&tree), at_(at) {}
    const Part& part() const { return tree_->parts_[at_]; }
    const PickleTree* tree_;
    std::uint32_t at_;
  };
  Value root() const { return {*this, root_}; }

 private:
  friend class PickleReader;
  friend class PickleCheck;
  friend Result<PickleTree> read_pickle_tree(std::string_view, std::span<const PickleGlobal>,
                                             const PickleLimits&);
  std::vector<Part> parts_;
  std::vector<std::uint32_t> items_;
  std::uint32_t root_ = 0;
};

// Reads protocols 2 to 5. Accepts only the operations for plain values, sets, instances and calls
// (lists and floats if the limits say so; no extensions or persistent ids), and integers of up to
// 64 bits. Anything else fails with Errc::corrupt, naming the offset and the operation.
Result<PickleTree> read_pickle_tree(std::string_view bytes, std::span<const PickleGlobal> allowed,
                                    const PickleLimits& limits = {});
Result<Pickled> read_pickle(std::string_view bytes, std::span<const PickleGlobal> allowed,
                            const PickleLimits& limits = {});

// Writes protocol 4, without frames. A value in several places is written once, and so are equal
// texts and globals. Fails for a value that read_pickle() would refuse.
Result<std::string> write_pickle(const Pickled& value, const PickleLimits& limits = {});

// Constructors of values to write.
Pickled pickle_none();
Pickled pickle_bool(bool value);
Pickled pickle_int(std::int64_t value);
Pickled pickle_text(std::string_view utf8);
Pickled pickle_bytes(std::string_view bytes);
Pickled pickle_global(const PickleGlobal& global);
Pickled pickle_items(PickleValue::Kind kind, std::vector<Pickled> items);  // all other kinds

}  // namespace lockstep::codec
