// A key-value store in memory for tests. Nothing happens until run(). Every node has its own
// FakeKeys on one FakeStore.
#pragma once

#include "base/callback_scope.h"
#include "rendezvous/key_value.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace lockstep::rendezvous {

class FakeStore {
 public:
  struct Wait {
    KeyValue::Keys keys;
    CallbackScope::Witness owner;
    std::function<void()> done;
  };

  std::map<std::string, std::string, std::less<>> values;

  void ask(std::function<void()> request) { requests_.push_back(std::move(request)); }
  void park(Wait wait) { waits_.push_back(std::move(wait)); }
  // Returns whether a node waits for the key.
  bool awaited(const std::string& key) const {
    return std::any_of(waits_.begin(), waits_.end(), [&](const Wait& wait) {
      return !wait.owner.gone() &&
             std::find(wait.keys.begin(), wait.keys.end(), key) != wait.keys.end();
    });
  }
  void run() {
    for (;;) {
      if (!requests_.empty()) {
        const auto request = std::move(requests_.front());
        requests_.pop_front();
        request();
      } else if (!wake()) {
        return;
      }
    }
  }

 private:
  bool wake() {
    for (auto at = waits_.begin(); at != waits_.end(); ++at) {
      bool all = true;
      for (const auto& key : at->keys)
        all = all && values.contains(key);
      if (!all && !at->owner.gone()) continue;
      const Wait wait = std::move(*at);
      waits_.erase(at);
      if (!wait.owner.gone()) wait.done();
      return true;
    }
    return false;
  }

  std::deque<std::function<void()>> requests_;
  std::list<Wait> waits_;
};

class FakeKeys : public KeyValue {
 public:
  explicit FakeKeys(FakeStore& store) : store_(store) {}

  void set(std::string_view key, std::string_view value, Done<void> done) override {
    multi_set({{std::string(key), std::string(value)}}, std::move(done));
  }
  void multi_set(const Entries& entries, Done<void> done) override {
    ask([this, entries, done = std::move(done)] {
      for (const auto& [key, value] : entries)
        store_.values[key] = value;
      if (done) done({});
    });
  }
  void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) override {
    ask([this, key = std::string(key), delta, done = std::move(done)] {
      auto& value = store_.values[key];
      value = std::to_string((value.empty() ? 0 : std::stoll(value)) + delta);
      if (done) done(std::stoll(value));
    });
  }
  void put_if_absent(std::string_view key, std::string_view value,
                     Done<std::string> done) override {
    ask([this, key = std::string(key), value = std::string(value), done = std::move(done)] {
      const std::string there = store_.values.try_emplace(key, value).first->second;
      if (done) done(there);
    });
  }
  void probe(std::string_view key, Done<std::optional<std::string>> done) override {
    ask([this, key = std::string(key), done = std::move(done)] {
      const auto at = store_.values.find(key);
      done(at == store_.values.end() ? std::nullopt : std::optional(at->second));
    });
  }
  void multi_get(const Keys& keys, Ms /*timeout*/, Done<Keys> done) override {
    store_.park({keys, waits_.witness(), [this, keys, done = std::move(done)] {
                   Keys found;
                   for (const auto& key : keys)
                     found.push_back(store_.values[key]);
                   done(std::move(found));
                 }});
  }
  void wait(const Keys& keys, Ms /*timeout*/, Done<void> done) override {
    store_.park({keys, waits_.witness(), [done = std::move(done)] { done({}); }});
  }
  void forget_waits() override { waits_.drop(); }
  std::unique_ptr<Watch> watch(std::string_view key,
                               std::function<void(std::string)> done) override {
    auto watch = std::make_unique<FakeWatch>();
    store_.park({{std::string(key)}, watch->scope.witness(), [this, key = std::string(key), done] {
                   done(store_.values[key]);
                 }});
    return watch;
  }

 private:
  struct FakeWatch : Watch {
    CallbackScope scope;
  };
  void ask(std::function<void()> request) { store_.ask(calls_(std::move(request))); }

  FakeStore& store_;
  CallbackScope calls_;
  CallbackScope waits_;
};

}  // namespace lockstep::rendezvous
