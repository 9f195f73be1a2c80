#include "codec/pickle.h"

#include "base/text.h"
#include "base/utf8.h"
#include "codec/pickle_ops.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::codec {
namespace {
using pickle::Op;
using pickle::op_name;
using Kind = PickleValue::Kind;
using Ref = std::uint32_t;  // a place in the arena

// A value under construction: others may point at it before it is filled, so it lives in an arena.
struct Draft {
  Kind kind = Kind::none;
  std::int64_t number = 0;
  std::string text = {};
  std::string module = {};
  std::vector<Ref> items = {};
};

bool may_be_key(Kind kind) {
  return kind != Kind::dict && kind != Kind::set;
}

class Reader {
 public:
  Reader(std::string_view bytes, std::span<const PickleGlobal> allowed, const PickleLimits& limits)
      : bytes_(bytes), allowed_(allowed), limits_(limits) {}

  Status run();
  const std::vector<Draft>& arena() const { return arena_; }
  Ref root() const { return stack_.back(); }

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
  Status text(std::size_t length_bytes);
  Status collect(Op op);
  Status header();
  Status frame();
  Status memoize();
  Status recall(std::size_t index_bytes);
  Status tuple(std::size_t size);
  Status construct(Kind kind);
  Status build();
  Status global();
  Status fill(Ref target, Kind wanted, std::span<const Ref> items);
  Result<std::uint64_t> number(std::size_t size);  // little endian, as it stands
  Result<std::string_view> take(std::size_t size);
  Result<Ref> pop();
  Status push(Draft draft);
  Status count(std::size_t items);
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  std::string_view bytes_;
  std::span<const PickleGlobal> allowed_;
  const PickleLimits& limits_;
  std::size_t at_ = 0;
  std::size_t op_at_ = 0;
  std::size_t counted_ = 0;
  bool stopped_ = false;
  std::vector<Draft> arena_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Ref> memo_;
};

Status Reader::run() {
  if (bytes_.size() > limits_.max_bytes)
    return corrupt(fmt::format("{} bytes, more than {}", bytes_.size(), limits_.max_bytes));
  LOCKSTEP_TRY(header());
  while (!stopped_) {
    op_at_ = at_;
    LOCKSTEP_TRY_ASSIGN(const std::string_view op, take(1));
    LOCKSTEP_TRY(step(static_cast<Op>(op[0])));
  }
  if (stack_.size() != 1 || !marks_.empty()) return corrupt("not exactly one value is left");
  if (at_ != bytes_.size()) return corrupt("bytes follow");
  return {};
}

Status Reader::header() {
  LOCKSTEP_TRY_ASSIGN(const std::string_view start, take(2));
  if (start[0] != static_cast<char>(Op::proto)) return corrupt("a pickle starts with PROTO");
  if (start[1] < 2 || start[1] > 5)
    return corrupt(fmt::format("protocol {} is not one of 2 to 5",
                               static_cast<unsigned>(static_cast<unsigned char>(start[1]))));
  return {};
}

Status Reader::step(Op op) {
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

Status Reader::scalar(Op op) {
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
      if (size > 8) return corrupt(fmt::format("an integer of {} bytes", size));
      LOCKSTEP_TRY_ASSIGN(std::uint64_t value, number(size));
      const bool negative = size > 0 && (value >> (8 * size - 1) & 1) != 0;
      if (negative && size < 8) value |= ~std::uint64_t{0} << (8 * size);
      return push({.kind = Kind::integer, .number = static_cast<std::int64_t>(value)});
    }
    case Op::short_binbytes: {
      LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, number(1));
      LOCKSTEP_TRY_ASSIGN(const std::string_view bytes, take(size));
      return push({.kind = Kind::bytes, .text = std::string(bytes)});
    }
    default:
      return corrupt("an operation that is not accepted");
  }
}

Status Reader::text(std::size_t length_bytes) {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, number(length_bytes));
  LOCKSTEP_TRY_ASSIGN(const std::string_view bytes, take(size));
  if (!is_utf8(bytes)) return corrupt("text that is not UTF-8");
  return push({.kind = Kind::text, .text = std::string(bytes)});
}

// Frames only help to read ahead; operations are read through them.
Status Reader::frame() {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t size, number(8));
  if (size > bytes_.size() - at_) return corrupt("the frame is longer than what is left");
  return {};
}

Status Reader::memoize() {
  if (stack_.size() <= floor()) return corrupt("nothing on the stack");
  memo_.push_back(stack_.back());
  return {};
}

Status Reader::recall(std::size_t index_bytes) {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t index, number(index_bytes));
  if (index >= memo_.size()) return corrupt(fmt::format("no memo {}", index));
  LOCKSTEP_TRY(count(1));
  stack_.push_back(memo_[index]);
  return {};
}

Status Reader::tuple(std::size_t size) {
  if (stack_.size() - floor() < size) return corrupt("too little on the stack");
  Draft draft{.kind = Kind::tuple};
  draft.items.assign(stack_.end() - static_cast<std::ptrdiff_t>(size), stack_.end());
  stack_.resize(stack_.size() - size);
  return push(std::move(draft));
}

Status Reader::construct(Kind kind) {
  LOCKSTEP_TRY_ASSIGN(const Ref arguments, pop());
  LOCKSTEP_TRY_ASSIGN(const Ref callee, pop());
  if (arena_[callee].kind != Kind::global) return corrupt("what is called is not a global");
  if (arena_[arguments].kind != Kind::tuple) return corrupt("the arguments are not a tuple");
  return push({.kind = kind, .items = {callee, arguments}});
}

// As Python, which copies the attributes into the instance: what happens to that dict later does
// not matter.
Status Reader::build() {
  LOCKSTEP_TRY_ASSIGN(const Ref state, pop());
  if (stack_.size() <= floor()) return corrupt("too little on the stack");
  Draft& object = arena_[stack_.back()];
  const Draft& attributes = arena_[state];
  if (object.kind != Kind::object) return corrupt("attributes for what is no instance");
  if (attributes.kind != Kind::dict) return corrupt("the attributes are not a dict");
  for (std::size_t i = 0; i < attributes.items.size(); i += 2) {
    if (arena_[attributes.items[i]].kind != Kind::text)
      return corrupt("an attribute's name is not a text");
  }
  LOCKSTEP_TRY(count(attributes.items.size()));
  object.items.insert(object.items.end(), attributes.items.begin(), attributes.items.end());
  return {};
}

Status Reader::global() {
  LOCKSTEP_TRY_ASSIGN(const Ref name, pop());
  LOCKSTEP_TRY_ASSIGN(const Ref module, pop());
  if (arena_[name].kind != Kind::text || arena_[module].kind != Kind::text)
    return corrupt("module and name are not both texts");
  const PickleGlobal wanted{arena_[module].text, arena_[name].text};
  if (std::find(allowed_.begin(), allowed_.end(), wanted) == allowed_.end())
    return corrupt(fmt::format("the global '{}.{}' is not accepted", printable(wanted.module, 100),
                               printable(wanted.name, 100)));
  return push({.kind = Kind::global, .text = wanted.name, .module = wanted.module});
}

Status Reader::collect(Op op) {
  std::size_t first = 0;
  if (op == Op::setitem) {
    if (stack_.size() - floor() < 3) return corrupt("too little on the stack");
    first = stack_.size() - 2;
  } else {
    if (marks_.empty()) return corrupt("no mark");
    first = marks_.back();
    marks_.pop_back();
    if (first <= floor()) return corrupt("nothing to fill before the mark");
  }
  LOCKSTEP_TRY(fill(stack_[first - 1], op == Op::additems ? Kind::set : Kind::dict,
                    std::span(stack_).subspan(first)));
  stack_.resize(first);
  return {};
}

Status Reader::fill(Ref target, Kind wanted, std::span<const Ref> items) {
  Draft& draft = arena_[target];
  const bool dict = wanted == Kind::dict;
  if (draft.kind != wanted) return corrupt(dict ? "not a dict" : "not a set");
  if (dict && items.size() % 2 != 0) return corrupt("a key without a value");
  for (std::size_t i = 0; i < items.size(); i += dict ? 2 : 1) {
    if (!may_be_key(arena_[items[i]].kind)) return corrupt("a dict or set as a key");
  }
  draft.items.insert(draft.items.end(), items.begin(), items.end());
  return {};
}

Result<std::uint64_t> Reader::number(std::size_t size) {
  LOCKSTEP_TRY_ASSIGN(const std::string_view bytes, take(size));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

Result<std::string_view> Reader::take(std::size_t size) {
  if (size > bytes_.size() - at_) return corrupt("the bytes end too early");
  const std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

Result<Ref> Reader::pop() {
  if (stack_.size() <= floor()) return corrupt("too little on the stack");
  const Ref top = stack_.back();
  stack_.pop_back();
  return top;
}

Status Reader::push(Draft draft) {
  LOCKSTEP_TRY(count(1 + draft.items.size()));
  arena_.push_back(std::move(draft));
  stack_.push_back(static_cast<Ref>(arena_.size() - 1));
  return {};
}

// Work and memory follow this number. Each value of the tree counts here at most twice: itself, and
// when it becomes an item of what is made out of it.
Status Reader::count(std::size_t items) {
  counted_ += items;
  if (counted_ > 2 * limits_.max_items)
    return corrupt(fmt::format("more than {} values", limits_.max_items));
  return {};
}

// Turns drafts into values, each once. Refuses circles and what is too deep or, as a tree, too
// large.
class Finisher {
 public:
  Finisher(const std::vector<Draft>& arena, const PickleLimits& limits)
      : arena_(arena), limits_(limits), done_(arena.size()) {}

  Status finish(Ref ref, std::size_t depth) {
    Done& done = done_[ref];
    if (done.open) return fail(Errc::corrupt, "pickle: a value contains itself");
    if (depth + done.height > limits_.max_depth)
      return fail(Errc::corrupt, fmt::format("pickle: deeper than {}", limits_.max_depth));
    if (done.value) return {};
    done.open = true;
    const Draft& draft = arena_[ref];
    auto value = std::make_shared<PickleValue>();
    value->items.reserve(draft.items.size());
    for (const Ref item : draft.items) {
      LOCKSTEP_TRY(finish(item, depth + 1));
      done.height = std::max(done.height, done_[item].height + 1);
      done.size += done_[item].size;
      if (done.size > limits_.max_items)
        return fail(Errc::corrupt, fmt::format("pickle: more than {} values", limits_.max_items));
      value->items.push_back(done_[item].value);
    }
    value->kind = draft.kind;
    value->number = draft.number;
    value->text = draft.text;
    value->module = draft.module;
    done.value = std::move(value);
    done.open = false;
    return {};
  }
  Pickled value(Ref ref) const { return done_[ref].value; }

 private:
  struct Done {
    bool open = false;
    std::size_t height = 1;
    std::size_t size = 1;
    Pickled value;
  };
  const std::vector<Draft>& arena_;
  const PickleLimits& limits_;
  std::vector<Done> done_;
};

}  // namespace

Result<Pickled> read_pickle(std::string_view bytes, std::span<const PickleGlobal> allowed,
                            const PickleLimits& limits) {
  Reader reader(bytes, allowed, limits);
  LOCKSTEP_TRY(reader.run());
  Finisher finisher(reader.arena(), limits);
  LOCKSTEP_TRY(finisher.finish(reader.root(), 0));
  return finisher.value(reader.root());
}

}  // namespace lockstep::codec
