// A FileStore for tests against real PyTorch: reads JSON arrays, a line each, and answers each.
//   file_store_tool PATH
//   ["set", key, value]  ["add", key, n]  ["compare_set", key, expected, desired]  ["get", key, ms]
//   ["wait", key, ms]  ["probe", key]  ["hammer", key, times]: so many add(key, 1)
//   ["race", key, who, times]: so many successful compare_set() from "N:ANY" to "N+1:WHO"
//   ["read", run_id]  ["write", run_id, text]: the rendezvous state, as last read
// A failure is answered with {"error": text}.
#include "base/text.h"
#include "rendezvous/dynamic/file_state.h"
#include "rendezvous/file_store/file_store.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <optional>
#include <string>

namespace {
using namespace lockstep;              // NOLINT
using namespace lockstep::rendezvous;  // NOLINT
using nlohmann::json;

class Tool {
 public:
  explicit Tool(std::string path)
      : store_(file_store::FileStore::open(loop_, {.path = std::move(path)})) {}

  json carry_out(const json& line) {
    if (!store_) return {{"error", store_.error().message}};
    const std::string op = line.at(0);
    const std::string key = line.at(1);
    if (op == "set")
      return ask<void>([&](auto done) { store().set(key, line.at(2).get<std::string>(), done); });
    if (op == "add")
      return ask<std::int64_t>([&](auto done) { store().add(key, line.at(2), done); });
    if (op == "compare_set") return compare_set(key, line.at(2), line.at(3));
    if (op == "probe")
      return ask<std::optional<std::string>>([&](auto done) { store().probe(key, done); });
    if (op == "get" || op == "wait") {
      const std::chrono::milliseconds timeout(line.at(2).get<int>());
      if (op == "wait") return ask<void>([&](auto done) { store().wait({key}, timeout, done); });
      return ask<KeyValue::Keys>([&](auto done) { store().multi_get({key}, timeout, done); });
    }
    if (op == "hammer") return hammer(key, line.at(2));
    if (op == "race") return race(key, line.at(2), line.at(3));
    if (op == "read" || op == "write") return state(op, key, line);
    return {{"error", "what?"}};
  }

 private:
  file_store::FileStore& store() { return **store_; }

  template <class T, class Call>
  json ask(Call call) {
    json answer;
    call([&](const Result<T>& result) {
      answer = told(result);
      loop_.stop();
    });
    loop_.run();
    return answer;
  }
  static json told(const Status& status) {
    return status ? json(true) : json{{"error", status.error().message}};
  }
  static json told(const Result<std::optional<std::string>>& value) {
    if (value && !*value) return nullptr;
    return value ? json(**value) : json{{"error", value.error().message}};
  }
  static json told(const Result<dynamic::StateStore::Stored>& stored) {
    if (!stored) return {{"error", stored.error().message}};
    return {{"text", stored->text}, {"written", stored->written}};
  }
  template <class T>
  static json told(const Result<T>& result) {
    return result ? json(*result) : json{{"error", result.error().message}};
  }

  json compare_set(const std::string& key, const std::string& expected,
                   const std::string& desired) {
    return ask<std::string>([&](auto done) { store().compare_set(key, expected, desired, done); });
  }
  json hammer(const std::string& key, int times) {
    json last;
    for (int i = 0; i < times; ++i)
      last = ask<std::int64_t>([&](auto done) { store().add(key, 1, done); });
    return last;
  }
  json race(const std::string& key, const std::string& who, int times) {
    std::string known;
    for (int won = 0; won < times;) {
      const auto number = parse_int(split(known, ':').front()).value_or(0);
      const std::string next = std::to_string(number + 1) + ':' + who;
      json now = compare_set(key, known, next);
      if (now.is_object()) return now;
      known = now;
      if (known == next) ++won;
    }
    return known;
  }
  json state(const std::string& op, const std::string& run_id, const json& line) {
    if (!state_) state_.emplace(store(), run_id);
    return ask<dynamic::StateStore::Stored>([&](auto done) {
      const auto keep = [this, done](const Result<dynamic::StateStore::Stored>& stored) {
        if (stored) known_ = *stored;
        done(stored);
      };
      if (op == "read") return state_->read(keep);
      state_->write(known_, line.at(2), keep);
    });
  }

  io::Loop loop_;
  Result<std::unique_ptr<file_store::FileStore>> store_;
  std::optional<dynamic::FileState> state_;
  dynamic::StateStore::Stored known_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Tool tool(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    const json asked = json::parse(line, nullptr, false);
    if (!asked.is_array() || asked.size() < 2) return 2;
    std::cout << tool.carry_out(asked).dump() << std::endl;
  }
  return 0;
}
