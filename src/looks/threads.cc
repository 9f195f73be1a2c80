#include "looks/threads.h"

#include "base/number_ranges.h"
#include "base/text.h"
#include "looks/doing.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostName = 200;
constexpr std::size_t kMostRanks = 65'536;
constexpr std::string_view kMain = "main thread";
constexpr std::string_view kThread = "thread";
constexpr std::string_view kOutside = "thread outside Python";

std::string frame_text(const stacks::Frame& frame) {
  return fmt::format("{}:{} in {}", printable(frame.file, kMostName), frame.line,
                     printable(frame.function, kMostName));
}

ThreadText thread_text(std::string name, std::string_view kind, const stacks::ThreadStack& stack) {
  ThreadText text{.name = std::move(name),
                  .kind = std::string(kind),
                  .holds_gil = stack.holds_gil,
                  .whole = stack.whole};
  for (const stacks::Frame& frame : stack.frames) {
    if (text.frames.size() == kMostFrames) {
      text.whole = false;
      break;
    }
    text.frames.push_back(frame_text(frame));
  }
  return text;
}

NativeText native_text(const stacks::NativeThread& thread) {
  return {.state = std::string(1, thread.state),
          .runs = thread.runs,
          .call = thread.call,
          .wchan = thread.wchan,
          .at = thread.at,
          .callers = thread.callers};
}

const stacks::NativeThread* thread_of(const std::vector<stacks::NativeThread>& threads, pid_t tid) {
  const auto found = std::find_if(threads.begin(), threads.end(),
                                  [tid](const auto& each) { return each.tid == tid; });
  return found == threads.end() ? nullptr : &*found;
}

// Adds the kernel's name of a thread, where it says more than the name of the process.
std::string named(pid_t tid, const stacks::NativeThread* native,
                  const std::vector<stacks::NativeThread>& all, pid_t pid) {
  const stacks::NativeThread* main = thread_of(all, pid);
  if (native == nullptr || native->name.empty() || (main != nullptr && main->name == native->name))
    return fmt::format("thread {}", tid);
  return fmt::format("thread {} ({})", tid, native->name);
}

// Adds a thread; the main thread comes first.
void add(RankText& text, ThreadText thread, const stacks::NativeThread* native) {
  if (native != nullptr) thread.native = native_text(*native);
  const bool main = thread.kind == kMain;
  text.threads.push_back(std::move(thread));
  if (main) std::rotate(text.threads.begin(), text.threads.end() - 1, text.threads.end());
}

void add_python(const RankLook& look, const RankThreads& threads, RankText& text) {
  for (const stacks::ThreadStack& thread : threads.python) {
    const bool main = thread.tid == look.pid || (thread.tid == 0 && threads.python.size() == 1);
    const pid_t tid = main ? look.pid : thread.tid;
    const auto* native = tid == 0 ? nullptr : thread_of(threads.native, tid);
    add(text,
        thread_text(main ? std::string(kMain) : named(tid, native, threads.native, look.pid),
                    main ? kMain : kThread, thread),
        native);
  }
}

// Adds the threads that have no Python stack. Before Python 3.11 the ids of Python threads are not
// known, so any thread may be one of those. The same holds if no Python stack was read.
void add_others(const RankLook& look, const RankThreads& threads, RankText& text) {
  const auto& python = threads.python;
  const bool known =
      !python.empty() &&
      std::none_of(python.begin(), python.end(), [](const auto& each) { return each.tid == 0; });
  for (const stacks::NativeThread& native : threads.native) {
    const bool main = native.tid == look.pid;
    if (std::any_of(python.begin(), python.end(), [&](const auto& each) {
          return each.tid == native.tid || (main && each.tid == 0 && python.size() == 1);
        }))
      continue;
    ThreadText thread{.name = std::string(kMain), .kind = std::string(kMain)};
    if (!main) {
      thread.name = named(native.tid, &native, threads.native, look.pid);
      thread.kind = known ? kOutside : kThread;
      if (known) thread.name += " outside Python";
    }
    add(text, std::move(thread), &native);
  }
}

// Ranks that work change between running and sleeping all the time. Ranks with the same stacks are
// told apart only if one is in uninterruptible sleep (D), stopped (T), traced (t) or a zombie (Z).
char state_apart(const std::string& state) {
  const char letter = state.empty() ? '?' : state.front();
  return std::string_view("DTtZ").find(letter) == std::string_view::npos ? '-' : letter;
}

std::string key_of(const ThreadText& thread) {
  std::string key = fmt::format("{}\n{}{}\n", thread.kind, thread.holds_gil, thread.whole);
  for (const std::string& frame : thread.frames)
    key += frame + "\n";
  // The possible callers stay out: they may be left over from calls that have returned.
  if (const auto& native = thread.native)
    key += fmt::format("{}\n{}\n{}\n", native->runs, native->call, native->at);
  return key;
}

std::string key_of(const RankText& rank) {
  std::vector<std::string> threads;
  for (const ThreadText& thread : rank.threads)
    threads.push_back(fmt::format("{} {}", thread.count, key_of(thread)));
  std::sort(threads.begin(), threads.end());
  return fmt::format("{}{}\n{}\n{}", state_apart(rank.state), rank.doing, rank.left_out,
                     join(threads, "\n"));
}

// "3 threads", "1 loader", "12 threads outside Python", "main thread".
std::string counted(std::string_view kind, int count) {
  if (kind == kMain && count == 1) return std::string(kMain);
  if (count == 1) return fmt::format("1 {}", kind);
  if (kind == kOutside) return fmt::format("{} threads outside Python", count);
  return kind == "child" ? fmt::format("{} children", count) : fmt::format("{} {}s", count, kind);
}

void fold_threads(RankText& rank) {
  std::map<std::string, std::size_t> places;
  std::vector<ThreadText> folded;
  for (ThreadText& thread : rank.threads) {
    const auto [place, fresh] = places.try_emplace(key_of(thread), folded.size());
    if (fresh) {
      folded.push_back(std::move(thread));
      continue;
    }
    ThreadText& same = folded[place->second];
    same.count += thread.count;
    same.name = counted(same.kind, same.count);
  }
  rank.threads = std::move(folded);
}

std::string native_words(const NativeText& native) {
  if (native.runs) return "runs";
  std::string words = native.call.empty() ? "state " + native.state : native.call;
  if (!native.wchan.empty()) words += ", waits in " + native.wchan;
  if (!native.at.empty()) words += ", at " + native.at;
  return words;
}

void add_native(const NativeText& native, std::string& text) {
  text += fmt::format("    native: {}\n", native_words(native));
  if (native.callers.empty()) return;
  text += "    possible callers:\n";
  for (const std::string& caller : native.callers)
    text += fmt::format("      {}\n", caller);
}

}  // namespace

void fields(codec::JsonFields& io, NativeText& native) {
  io("state", native.state);
  io("runs", native.runs);
  io("call", native.call);
  io("wchan", native.wchan);
  io("at", native.at);
  io("possible_callers", native.callers);
}

void fields(codec::JsonFields& io, ThreadText& thread) {
  io("name", thread.name);
  io("kind", thread.kind);
  io("count", thread.count, {1, 1 << 16});
  io("holds_gil", thread.holds_gil);
  io("whole", thread.whole);
  io("frames", thread.frames);
  io.optional("native", thread.native);
}

void fields(codec::JsonFields& io, RankText& rank) {
  io("rank", rank.rank, {0, 1 << 24});
  io("pid", rank.pid, {0, 1 << 30});
  io("state", rank.state);
  io("doing", rank.doing);
  io("threads", rank.threads);
  io("ranks", rank.ranks);
  io("threads_left_out", rank.left_out, {0, 1 << 24});
  io("output", rank.output);
}

RankText rank_text(const RankLook& look, const RankThreads& threads) {
  RankText text{.rank = look.rank, .pid = look.pid};
  if (!look.process) return text;
  text.state = std::string(1, look.process->state);
  if (!look.process->wchan.empty()) text.state += ", " + look.process->wchan;
  const Activity activity = what_doing(look);
  text.doing = kDoingWords[static_cast<std::size_t>(activity.doing)];
  if (!activity.call.empty()) text.doing += " " + activity.call;
  text.left_out = static_cast<int>(threads.left_out);
  add_python(look, threads, text);
  add_others(look, threads, text);
  for (const ChildLook& child : look.children) {
    if (!child.stack) continue;
    const std::string_view kind = is_loader(child) ? "loader" : "child";
    add(text, thread_text(fmt::format("{}, pid {}", kind, child.pid), kind, *child.stack),
        thread_of(threads.children, child.pid));
  }
  return text;
}

std::vector<RankText> fold_ranks(std::vector<RankText> ranks) {
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::map<std::string, std::size_t> places;
  std::vector<RankText> folded;
  std::vector<std::vector<int>> numbers;  // of each folded text
  for (RankText& rank : ranks) {
    fold_threads(rank);
    const auto [place, fresh] = places.try_emplace(key_of(rank), folded.size());
    if (fresh) {
      folded.push_back(std::move(rank));
      numbers.push_back(ranks_of(folded.back()));
      continue;
    }
    for (const int number : ranks_of(rank))
      numbers[place->second].push_back(number);
  }
  for (std::size_t i = 0; i < folded.size(); ++i) {
    std::sort(numbers[i].begin(), numbers[i].end());
    numbers[i].erase(std::unique(numbers[i].begin(), numbers[i].end()), numbers[i].end());
    if (numbers[i].size() > 1) folded[i].ranks = ranges_text(numbers[i], kMostRanks);
  }
  return folded;
}

std::size_t size_of(const RankText& rank) {
  constexpr std::size_t kAround = 128;  // names of members, numbers
  std::size_t size = kAround;
  for (const ThreadText& thread : rank.threads) {
    size += kAround + thread.name.size();
    for (const std::string& frame : thread.frames)
      size += frame.size() + 3;
    if (!thread.native) continue;
    size += kAround + thread.native->at.size();
    for (const std::string& caller : thread.native->callers)
      size += caller.size() + 3;
  }
  return size;
}

void bound_threads(RankText& rank, std::size_t bytes) {
  std::size_t size = size_of(rank);
  // The main thread stands first, so it goes last.
  while (!rank.threads.empty() && (rank.threads.size() > kMostThreadTexts || size > bytes)) {
    RankText last;
    last.threads.push_back(std::move(rank.threads.back()));
    rank.threads.pop_back();
    size -= std::min(size, size_of(last) - size_of(RankText()));
    rank.left_out += last.threads.front().count;
  }
}

std::vector<int> ranks_of(const RankText& text) {
  auto ranks = text.ranks.empty() ? std::nullopt : parse_ranges(text.ranks, kMostRanks);
  if (!ranks || ranks->empty()) return {text.rank};
  std::sort(ranks->begin(), ranks->end());
  return std::move(*ranks);
}

std::string threads_text(const RankText& rank) {
  const bool several = !rank.ranks.empty();
  std::string text = several ? fmt::format("ranks {}, state {}: {}\n", ranges_text(ranks_of(rank)),
                                           rank.state, rank.doing)
                             : fmt::format("rank {}, pid {}, state {}: {}\n", rank.rank, rank.pid,
                                           rank.state, rank.doing);
  for (const ThreadText& thread : rank.threads) {
    text += fmt::format("  {}{}{}\n", several ? counted(thread.kind, thread.count) : thread.name,
                        thread.holds_gil ? ", holds the GIL" : "", thread.whole ? "" : " (a part)");
    if (thread.native) add_native(*thread.native, text);
    for (const std::string& frame : thread.frames)
      text += "    " + frame + "\n";
  }
  if (rank.threads.empty()) text += "  no Python stack is readable\n";
  if (rank.left_out > 0)
    text += fmt::format("  {} more {} left out\n", rank.left_out,
                        rank.left_out == 1 ? "thread is" : "threads are");
  return text;
}

}  // namespace lockstep::looks
