// Prints the Python stacks of processes, for tests against real interpreters.
//   stacks_tool read PID              all threads: {"threads": [{"tid", "gil", "whole", "frames"}]}
//   stacks_tool main PID              the main thread, in the same form
//   stacks_tool repeat COUNT PID      attaches once, then prints a line for each of COUNT reads
//   stacks_tool time COUNT PID...     milliseconds for all PIDs: attach and first read of the main
//                                     threads and of all threads, then the same again, COUNT times
//   stacks_tool record FILE PID       saves what a read looks at, as the fuzzer's input
// A frame is [function, file, line]. Instead of threads: {"reason": KIND, "sentence": TEXT}.
#include "io/fd.h"
#include "stacks/find_python.h"
#include "stacks/image_memory.h"
#include "stacks/stack_reader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {
using namespace lockstep;          // NOLINT
using namespace lockstep::stacks;  // NOLINT
using nlohmann::json;

const char* kind_name(Unreadable kind) {
  switch (kind) {
    case Unreadable::gone:
      return "gone";
    case Unreadable::denied:
      return "denied";
    case Unreadable::no_call:
      return "no_call";
    case Unreadable::not_python:
      return "not_python";
    case Unreadable::unknown_python:
      return "unknown_python";
    case Unreadable::starting:
      return "starting";
    case Unreadable::slow:
      return "slow";
    case Unreadable::changed:
      return "changed";
  }
  return "?";
}

json to_json(const Reason& reason) {
  return {{"reason", kind_name(reason.kind)}, {"sentence", reason.sentence}};
}

json to_json(const ThreadStack& stack) {
  json frames = json::array();
  for (const Frame& frame : stack.frames)
    frames.push_back({frame.function, frame.file, frame.line});
  return {{"tid", stack.tid}, {"gil", stack.holds_gil}, {"whole", stack.whole}, {"frames", frames}};
}

json to_json(const tl::expected<std::vector<ThreadStack>, Reason>& stacks) {
  if (!stacks) return to_json(stacks.error());
  json made = {{"threads", json::array()}};
  for (const ThreadStack& stack : *stacks)
    made["threads"].push_back(to_json(stack));
  return made;
}

json to_json(const tl::expected<std::optional<ThreadStack>, Reason>& stack) {
  if (!stack) return to_json(stack.error());
  json made = {{"threads", json::array()}};
  if (*stack) made["threads"].push_back(to_json(**stack));
  return made;
}

int repeat(int count, pid_t pid) {
  auto reader = StackReader::attach(pid);
  if (!reader) {
    std::cout << to_json(reader.error()) << "\n";
    return 0;
  }
  for (int i = 0; i < count; ++i)
    std::cout << to_json(reader->read()) << std::endl;
  return 0;
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

template <class Work>
double ms_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return ms_since(start);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

int time_reads(int count, const std::vector<pid_t>& pids) {
  std::vector<StackReader> readers;
  std::size_t threads = 0;
  const double attach = ms_of([&] {
    for (const pid_t pid : pids) {
      auto reader = StackReader::attach(pid);
      if (!reader) {
        std::cout << to_json(reader.error()) << "\n";
        std::exit(1);
      }
      readers.push_back(*std::move(reader));
    }
  });
  const auto all_main = [&] {
    for (StackReader& reader : readers)
      (void)reader.read_main();
  };
  const auto all = [&] {
    threads = 0;
    for (StackReader& reader : readers)
      if (const auto stacks = reader.read()) threads += stacks->size();
  };
  const double first_main = ms_of(all_main);
  const double first = ms_of(all);
  std::vector<double> again_main;
  std::vector<double> again;
  for (int i = 0; i < count; ++i) {
    again_main.push_back(ms_of(all_main));
    again.push_back(ms_of(all));
  }
  std::cout << json{{"processes", pids.size()}, {"threads", threads},
                    {"attach", attach},         {"first_main", first_main},
                    {"first", first},           {"warm_main", median(again_main)},
                    {"warm", median(again)}}
            << "\n";
  return 0;
}

int record(const std::string& path, pid_t pid) {
  RemoteMemory remote(pid);
  const auto maps = io::read_file("/proc/" + std::to_string(pid) + "/maps", 16U << 20);
  for (const MappedFile& file : python_files(maps.value_or(""), "")) {
    RecordingMemory memory(remote);
    const auto found = find_python(memory, {file}, [](const MappedFile&) { return nullptr; });
    if (!found || !found->layout) continue;
    const ThreadIds ids(pid);
    ProcessStacks stacks(*found->layout, found->runtime, ids.inner_pid());
    if (!stacks.read(memory)) continue;
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    const auto saved = save_recording({file.start, ids.inner_pid(), name, memory.image()});
    return io::write_file(path, saved) ? 0 : 1;
  }
  return 1;
}

int read_once(const std::string& verb, pid_t pid) {
  auto reader = StackReader::attach(pid);
  if (!reader)
    std::cout << to_json(reader.error()) << "\n";
  else
    std::cout << (verb == "main" ? to_json(reader->read_main()) : to_json(reader->read())) << "\n";
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && (words[0] == "read" || words[0] == "main"))
    return read_once(words[0], std::atoi(words[1].c_str()));
  if (words.size() == 3 && words[0] == "repeat")
    return repeat(std::atoi(words[1].c_str()), std::atoi(words[2].c_str()));
  if (words.size() == 3 && words[0] == "record")
    return record(words[1], std::atoi(words[2].c_str()));
  if (words.size() > 2 && words[0] == "time") {
    std::vector<pid_t> pids;
    for (std::size_t i = 2; i < words.size(); ++i)
      pids.push_back(std::atoi(words[i].c_str()));
    return time_reads(std::atoi(words[1].c_str()), pids);
  }
  std::cerr << "stacks_tool read|main|repeat|time|record ...\n";
  return 2;
}
