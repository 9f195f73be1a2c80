// Reads pickles. Peers are untrusted: every operation is bounded, and only the listed ones are
// accepted.
#include "codec/pickle.h"

#include "base/text.h"
#include "base/utf8.h"
#include "codec/pickle_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace lockstep::codec {
namespace {
using pickle::Op;
using pickle::op_name;
using Kind = PickleValue::Kind;
using Ref = std::uint32_t;  // a value's place in the tree

bool may_be_key(Kind kind) {
  return kind != Kind::dict && kind != Kind::set && kind != Kind::list;
}

}  // namespace

// Builds values inside the tree. Other values may refer to a value before it is filled.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, std::span<const PickleGlobal> allowed,
               const PickleLimits& limits)
      : bytes_(bytes), allowed_(allowed), limits_(limits) {}

  Status run();
  PickleTree take_tree() {
    tree_.root_ = stack_.back();
    return std::move(tree_);
  }

 private:
  Failure corrupt(std::string_view why) const {
    return fail(Errc::corrupt, fmt::format("pickle, offset {}, {}: {}", op_at_,
                                           op_at_ < bytes_.size()
                                               ? op_name(static_cast<unsigned char>(bytes_[op_at_]))
                                               : "end",
                                           why));
  }
  Status step(Op op);
  Status scalar(Op op);
  Status with_lists(Op op);
  Status text(std::size_t length_bytes);
  Status collect(Op op);
  Status header();
  Status frame();
  Status memoize();
  Status put(std::size_t index_bytes);
  Status recall(std::size_t index_bytes);
  Status tuple(std::size_t size);
  Status construct(Kind kind);
  Status build();
  Status global();
  using Part = PickleTree::Part;
  Status fill(Ref target, Kind wanted, std::span<const Ref> items);
  void make_room(Part& part, std::size_t items);
  void append(Ref target, std::span<const Ref> items);
  Result<std::uint64_t> number(std::size_t size);  // little-endian, unsigned
  Result<std::string_view> take(std::size_t size);
  Result<Ref> pop();
  Status push(Part part);
  Status push(Part part, std::span<const Ref> items);
  Status count(std::size_t items);
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  std::string_view bytes_;
  std::span<const PickleGlobal> allowed_;
  const PickleLimits& limits_;
  std::size_t at_ = 0;
  std::size_t op_at_ = 0;
  std::size_t counted_ = 0;
  bool stopped_ = false;
  PickleTree tree_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Ref> memo_;
};

Status PickleReader::run() {
  if (bytes_.size() > limits_.max_bytes)
    return corrupt(fmt::format("{} bytes, more than {}", bytes_.size(), limits_.max_bytes));
  LOCKSTEP_TRY(header());
  while (!stopped_) {
    op_at_ = at_;
    LOCKSTEP_TRY_ASSIGN(const std::string_view op, take(1));
    LOCKSTEP_TRY(step(static_cast<Op>(op[0])));
  }
  // Python would return the top of the stack and ignore the rest.
  if (stack_.size() != 1 || !marks_.empty()) return corrupt("not exactly one value is left");
  if (at_ != bytes_.size()) return corrupt("bytes follow");
  return {};
}

Status PickleReader::header() {
  LOCKSTEP_TRY_ASSIGN(const std::string_view start, take(2));
  // Protocols 0 and 1 have no header and use other operations.
  if (start[0] != static_cast<char>(Op::proto)) return corrupt("a pickle starts with PROTO");
  if (start[1] < 2 || start[1] > 5)
    return corrupt(fmt::format("protocol {} is not one of 2 to 5",
                               static_cast<unsigned>(static_cast<unsigned char>(start[1]))));
  return {};
}

Status PickleReader::step(Op op) {
  switch (op) {
    case Op::frame:
      return frame();
    case Op::stop:
      stopped_ = true;
      return {};
    case Op::short_binunicode:
      return text(1);
    case Op::binunicode:
      return text(4);
    case Op::memoize:
      return memoize();
    case Op::binget:
      return recall(1);
    case Op::long_binget:
      return recall(4);
    case Op::stack_global:
      return global();
    case Op::empty_tuple:
      return tuple(0);
    case Op::tuple1:
      return tuple(1);
    case Op::tuple2:
      return tuple(2);
    case Op::tuple3:
      return tuple(3);
    case Op::newobj:
      return construct(Kind::object);
    case Op::reduce:
      return construct(Kind::call);
    case Op::build:
      return build();
    case Op::empty_dict:
      return push({.kind = Kind::dict});
    case Op::empty_set:
      return push({.kind = Kind::set});
    case Op::mark:
      marks_.push_back(stack_.size());
      return {};
    case Op::setitem:
    case Op::setitems:
    case Op::additems:
      return collect(op);
    default:
      return scalar(op);
  }
}

Status PickleReader::scalar(Op op) {
  switch (op) {
    case Op::none:
      return push({});
    case Op::newtrue:
      return push({.kind = Kind::boolean, .number = 1});
    case Op::newfalse:
      return push({.kind = Kind::boolean});
    case Op::binint1:
    case Op::binint2:
    case Op::binint: {
      LOCKSTEP_TRY_ASSIGN(const std::uint64_t value, number(op == Op::binint1   ? 1
                                                            : op == Op::binint2 ? 2
                                                                                : 4));
      const auto signed32 = static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
      return push({.kind = Kind::integer,
                   .number = op == Op::binint ? signed32 : static_cast<std::int64_t>(value)});
    }
    case Op::long1: {
      LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, number(1));
      // A longer integer does not fit into 64 bits.
      if (size > 8) return corrupt(fmt::format("an integer of {} bytes", size));
      LOCKSTEP_TRY_ASSIGN(std::uint64_t value, number(size));
      const bool negative = size > 0 && (value >> (8 * size - 1) & 1) != 0;
      // Extend the sign: LONG1 has only as many bytes as the number needs.
      if (negative && size < 8) value |= ~std::uint64_t{0} << (8 * size);
      return push({.kind = Kind::integer, .number = static_cast<std::int64_t>(value)});
    }
    case Op::short_binbytes: {
      LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, number(1));
      LOCKSTEP_TRY_ASSIGN(const std::string_view bytes, take(size));
      return push({.kind = Kind::bytes, .text = bytes});
    }
    default:
      return limits_.lists ? with_lists(op) : corrupt("an operation that is not accepted");
  }
}

Status PickleReader::with_lists(Op op) {
  switch (op) {
    case Op::empty_list:
      return push({.kind = Kind::list});
    case Op::append:
    case Op::appends:
      return collect(op);
    case Op::binput:
      return put(1);
    case Op::long_binput:
      return put(4);
    case Op::binfloat: {
      LOCKSTEP_TRY_ASSIGN(const std::string_view bytes, take(8));
      std::uint64_t bits = 0;
      for (const char byte : bytes)  // big-endian, unlike all integers
        bits = bits << 8 | static_cast<unsigned char>(byte);
      return push({.kind = Kind::real, .number = static_cast<std::int64_t>(bits)});
    }
    case Op::tuple: {
      if (marks_.empty()) return corrupt("no mark");
      const std::size_t first = marks_.back();
      marks_.pop_back();
      const std::vector<Ref> items(stack_.begin() + static_cast<std::ptrdiff_t>(first),
                                   stack_.end());
      stack_.resize(first);
      return push({.kind = Kind::tuple}, items);
    }
    default:
      return corrupt("an operation that is not accepted");
  }
}

Status PickleReader::text(std::size_t length_bytes) {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, number(length_bytes));
  LOCKSTEP_TRY_ASSIGN(const std::string_view bytes, take(size));
  // Python's pickles keep lone surrogates, but text from here goes into JSON and to terminals.
  if (!is_utf8(bytes)) return corrupt("text that is not UTF-8");
  return push({.kind = Kind::text, .text = bytes});
}

// A frame only tells a reader how far to read ahead. Operations inside are read like any others.
Status PickleReader::frame() {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, number(8));
  if (size > bytes_.size() - at_) return corrupt("the frame is longer than what is left");
  return {};
}

Status PickleReader::memoize() {
  // A mark protects the values below: an operation must not reach beyond the last mark.
  if (stack_.size() <= floor()) return corrupt("nothing on the stack");
  memo_.push_back(stack_.back());
  return {};
}

// Memos are numbered in turn, so that a number cannot make the memo large.
Status PickleReader::put(std::size_t index_bytes) {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t index, number(index_bytes));
  if (index > memo_.size()) return corrupt(fmt::format("memo {} out of turn", index));
  if (index == memo_.size()) return memoize();
  if (stack_.size() <= floor()) return corrupt("nothing on the stack");
  memo_[index] = stack_.back();
  return {};
}

Status PickleReader::recall(std::size_t index_bytes) {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t index, number(index_bytes));
  if (index >= memo_.size()) return corrupt(fmt::format("no memo {}", index));
  // Count the value again: a shared value makes a walk over the tree longer at each of its places.
  LOCKSTEP_TRY(count(1));
  stack_.push_back(memo_[index]);
  return {};
}

Status PickleReader::tuple(std::size_t size) {
  if (stack_.size() - floor() < size) return corrupt("too little on the stack");
  std::array<Ref, 3> items{};
  std::copy_n(stack_.end() - static_cast<std::ptrdiff_t>(size), size, items.begin());
  stack_.resize(stack_.size() - size);
  return push({.kind = Kind::tuple}, std::span(items).first(size));
}

Status PickleReader::construct(Kind kind) {
  LOCKSTEP_TRY_ASSIGN(const Ref arguments, pop());
  LOCKSTEP_TRY_ASSIGN(const Ref callee, pop());
  // Accept only names as class or callable, never a value from the pickle.
  if (tree_.parts_[callee].kind != Kind::global) return corrupt("the callee is not a global");
  if (tree_.parts_[arguments].kind != Kind::tuple) return corrupt("the arguments are not a tuple");
  return push({.kind = kind}, std::array<Ref, 2>{callee, arguments});
}

// Copies the attributes into the instance, as Python does. Later changes of the dict have no
// effect.
Status PickleReader::build() {
  LOCKSTEP_TRY_ASSIGN(const Ref state, pop());
  if (stack_.size() <= floor()) return corrupt("too little on the stack");
  // `attributes` is a copy, since make_room() below may move the items.
  Part& object = tree_.parts_[stack_.back()];
  const Part attributes = tree_.parts_[state];
  if (object.kind != Kind::object) return corrupt("attributes for a value that is not an instance");
  if (attributes.kind != Kind::dict) return corrupt("the attributes are not a dict");
  for (std::size_t i = 0; i < attributes.size; i += 2) {
    if (tree_.parts_[tree_.items_[attributes.first + i]].kind != Kind::text)
      return corrupt("an attribute's name is not a text");
  }
  LOCKSTEP_TRY(count(attributes.size));
  make_room(object, attributes.size);
  std::copy_n(tree_.items_.begin() + attributes.first, attributes.size,
              tree_.items_.begin() + object.first + object.size);
  object.size += attributes.size;
  return {};
}

Status PickleReader::global() {
  LOCKSTEP_TRY_ASSIGN(const Ref name, pop());
  LOCKSTEP_TRY_ASSIGN(const Ref module, pop());
  if (tree_.parts_[name].kind != Kind::text || tree_.parts_[module].kind != Kind::text)
    return corrupt("module and name are not both texts");
  const std::string_view in = tree_.parts_[module].text;
  const std::string_view called = tree_.parts_[name].text;
  const auto is_wanted = [&](const PickleGlobal& one) {
    return one.name == called && one.module == in;
  };
  // Python would import this name. Here the name must be on the caller's list.
  if (std::none_of(allowed_.begin(), allowed_.end(), is_wanted))
    return corrupt(fmt::format("the global '{}.{}' is not accepted", printable(in, 100),
                               printable(called, 100)));
  return push({.kind = Kind::global, .text = called, .module = in});
}

Status PickleReader::collect(Op op) {
  std::size_t first = 0;
  if (op == Op::setitem || op == Op::append) {
    // SETITEM takes a key and a value without a mark, APPEND takes an item.
    const std::size_t taken = op == Op::setitem ? 2 : 1;
    if (stack_.size() - floor() < taken + 1) return corrupt("too little on the stack");
    first = stack_.size() - taken;
  } else {
    if (marks_.empty()) return corrupt("no mark");
    first = marks_.back();
    marks_.pop_back();
    // The container lies just below the mark.
    if (first <= floor()) return corrupt("nothing to fill before the mark");
  }
  const Kind wanted = op == Op::additems                      ? Kind::set
                      : op == Op::append || op == Op::appends ? Kind::list
                                                              : Kind::dict;
  LOCKSTEP_TRY(fill(stack_[first - 1], wanted, std::span(stack_).subspan(first)));
  stack_.resize(first);
  return {};
}

Status PickleReader::fill(Ref target, Kind wanted, std::span<const Ref> items) {
  const Part& draft = tree_.parts_[target];
  const bool dict = wanted == Kind::dict;
  if (draft.kind != wanted)
    return corrupt(dict ? "not a dict" : wanted == Kind::set ? "not a set" : "not a list");
  if (dict && items.size() % 2 != 0) return corrupt("a key without a value");
  for (std::size_t i = 0; wanted != Kind::list && i < items.size(); i += dict ? 2 : 1) {
    // A dict or set is not hashable, as in Python.
    if (!may_be_key(tree_.parts_[items[i]].kind)) return corrupt("a dict or set as a key");
  }
  append(target, items);
  return {};
}

// Makes room for more items. Doubles the room when needed, so that adding many items takes linear
// time.
void PickleReader::make_room(Part& part, std::size_t items) {
  const std::size_t wanted = part.size + items;
  if (wanted <= part.room) return;
  const std::size_t room = std::max<std::size_t>(wanted, std::size_t{2} * part.room);
  const std::size_t first = tree_.items_.size();
  // The items move to the end of the list. Their old places stay unused.
  tree_.items_.resize(first + room);
  std::copy_n(tree_.items_.begin() + part.first, part.size,
              tree_.items_.begin() + static_cast<std::ptrdiff_t>(first));
  part.first = static_cast<Ref>(first);
  part.room = static_cast<Ref>(room);
}

void PickleReader::append(Ref target, std::span<const Ref> items) {
  Part& part = tree_.parts_[target];
  make_room(part, items.size());
  std::copy(items.begin(), items.end(), tree_.items_.begin() + part.first + part.size);
  part.size += static_cast<Ref>(items.size());
}

Result<std::uint64_t> PickleReader::number(std::size_t size) {
  LOCKSTEP_TRY_ASSIGN(const std::string_view bytes, take(size));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

Result<std::string_view> PickleReader::take(std::size_t size) {
  if (size > bytes_.size() - at_) return corrupt("the bytes end too early");
  const std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

Result<Ref> PickleReader::pop() {
  if (stack_.size() <= floor()) return corrupt("too little on the stack");
  const Ref top = stack_.back();
  stack_.pop_back();
  return top;
}

Status PickleReader::push(Part part) {
  return push(part, {});
}

Status PickleReader::push(Part part, std::span<const Ref> items) {
  LOCKSTEP_TRY(count(1 + items.size()));
  tree_.parts_.push_back(part);
  stack_.push_back(static_cast<Ref>(tree_.parts_.size() - 1));
  append(stack_.back(), items);
  return {};
}

// Bounds work and memory by twice the limit: a value counts when it is made, and again when it
// becomes an item of another value.
Status PickleReader::count(std::size_t items) {
  counted_ += items;
  if (counted_ > 2 * limits_.max_items)
    return corrupt(fmt::format("more than {} values", limits_.max_items));
  return {};
}

// Refuses a value that contains itself, is too deep, or is too large when written out as a tree.
class PickleCheck {
 public:
  PickleCheck(const PickleTree& tree, const PickleLimits& limits)
      : tree_(tree), limits_(limits), done_(tree.parts_.size()) {}

  Status check(Ref ref, std::size_t depth) {
    Done& done = done_[ref];
    // The value is still open, so it contains itself.
    if (done.open) return fail(Errc::corrupt, "pickle: a value contains itself");
    // The height of a shared value is known from its first visit.
    if (depth + done.height > limits_.max_depth)
      return fail(Errc::corrupt, fmt::format("pickle: deeper than {}", limits_.max_depth));
    if (done.checked) return {};
    done.open = true;
    const PickleTree::Part& part = tree_.parts_[ref];
    for (std::size_t i = 0; i < part.size; ++i) {
      const Ref item = tree_.items_[part.first + i];
      // The limit of the depth also bounds this recursion.
      LOCKSTEP_TRY(check(item, depth + 1));
      done.height = std::max(done.height, done_[item].height + 1);
      done.size += done_[item].size;
      if (done.size > limits_.max_items)
        return fail(Errc::corrupt, fmt::format("pickle: more than {} values", limits_.max_items));
    }
    done.checked = true;
    done.open = false;
    return {};
  }

 private:
  struct Done {
    bool open = false;
    bool checked = false;
    std::uint32_t height = 1;
    std::size_t size = 1;
  };
  const PickleTree& tree_;
  const PickleLimits& limits_;
  std::vector<Done> done_;
};

namespace {

// Copies a value. A value in several places stays a single value.
Pickled copy_of(const PickleTree::Value& value, std::map<const void*, Pickled>& copies) {
  Pickled& copy = copies[value.place()];
  if (copy) return copy;
  PickleValue made;
  made.kind = value.kind();
  made.number = value.number();
  made.text = value.text();
  made.module = value.module();
  made.items.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i)
    made.items.push_back(copy_of(value[i], copies));
  copy = std::make_shared<const PickleValue>(std::move(made));
  return copy;
}

}  // namespace

Pickled PickleTree::Value::copy() const {
  std::map<const void*, Pickled> copies;
  return copy_of(*this, copies);
}

Result<PickleTree> read_pickle_tree(std::string_view bytes, std::span<const PickleGlobal> allowed,
                                    const PickleLimits& limits) {
  PickleReader reader(bytes, allowed, limits);
  LOCKSTEP_TRY(reader.run());
  PickleTree tree = reader.take_tree();
  PickleCheck check(tree, limits);
  LOCKSTEP_TRY(check.check(tree.root_, 0));
  return tree;
}

Result<Pickled> read_pickle(std::string_view bytes, std::span<const PickleGlobal> allowed,
                            const PickleLimits& limits) {
  LOCKSTEP_TRY_ASSIGN(const PickleTree tree, read_pickle_tree(bytes, allowed, limits));
  return tree.root().copy();
}

}  // namespace lockstep::codec
